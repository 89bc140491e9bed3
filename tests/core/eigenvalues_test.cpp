#include "headwise/core/eigenvalues.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "headwise/core/parallel.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"

using namespace headwise;

namespace {

/// By real part, then by imaginary part.
std::vector<std::complex<double>> sorted(std::vector<std::complex<double>> all) {
  std::sort(all.begin(), all.end(), [](auto a, auto b) {
    return std::pair(a.real(), a.imag()) < std::pair(b.real(), b.imag());
  });
  return all;
}

}  // namespace

TEST_CASE("eigenvalues of matrices known in closed form", "[core]") {
  // A rotation by 90 degrees and a stretch; then a triangle, whose diagonal they are.
  const Tensor<double> turn({3, 3}, {0, -2, 0, 2, 0, 0, 0, 0, 5});
  const auto turned = sorted(eigenvalues(as_rows(turn)));
  const std::vector<std::complex<double>> expected = {{0, -2}, {0, 2}, {5, 0}};
  for (std::size_t i = 0; i < 3; ++i) CHECK(std::abs(turned[i] - expected[i]) < 1e-14);

  const Tensor<double> triangle({3, 3}, {-1, 7, 8, 0, 2, 9, 0, 0, 3});
  for (const Mat<const double> m : {as_rows(triangle), as_rows(triangle).t()}) {
    const auto diagonal = sorted(eigenvalues(m));
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(std::abs(diagonal[i] - std::array{-1.0, 2.0, 3.0}[i]) < 1e-13);
  }
  const auto corner = sorted(eigenvalues(as_rows(triangle).block(1, 1, 2, 2)));
  CHECK(corner.size() == 2);
  CHECK(std::abs(corner[0] - 2.0) < 1e-14);
  CHECK(eigenvalues({}).empty());
}

TEST_CASE("eigenvalues add up to the trace and do not depend on threads", "[core][threads]") {
  const Tensor<double> x = test::random_tensor<double>({70, 70}, 3);
  const auto alone = eigenvalues(as_rows(x));
  std::complex<double> total = 0;
  double trace = 0;
  for (const auto& value : alone) total += value;
  for (Index i = 0; i < 70; ++i) trace += x.data()[i * 71];
  CHECK(std::abs(total - trace) < 1e-11);

  const test::Threads two(2);
  std::vector<std::vector<std::complex<double>>> all(4);
  parallel_for(4, 1,
               [&](Index i, Index) { all[static_cast<std::size_t>(i)] = eigenvalues(as_rows(x)); });
  for (const auto& one : all) CHECK(one == alone);
}

TEST_CASE("eigenvalues refuse what is not square, and say NaN where there is nothing to say",
          "[core][errors]") {
  const Tensor<double> wide = Tensor<double>::zeros({2, 3});
  CHECK(test::message_of<ShapeError>([&] { eigenvalues(as_rows(wide)); }) ==
        "eigenvalues: (2,3) is not square");
  const Tensor<double> odd({2, 2}, {1, 2, std::nan(""), 4});
  const auto none = eigenvalues(as_rows(odd));
  CHECK(none.size() == 2);
  CHECK(std::isnan(none[0].real()));
}
