#include "headwise/core/tensor.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "headwise/core/memory.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;

namespace {

/// Where the elements are, without the detaching that data() of a tensor to be written does.
template <Real T>
const T* place(const Tensor<T>& x) {
  return x.data();
}

/// Puts poison_uninitialized back on, which every test runs with.
struct PoisonOff {
  PoisonOff() { poison_uninitialized(false); }
  ~PoisonOff() { poison_uninitialized(true); }
};

}  // namespace

TEMPLATE_TEST_CASE("a copy shares storage until one of the two is written", "[core]", float,
                   double) {
  Tensor<TestType> a({2, 2}, {1, 2, 3, 4});
  Tensor<TestType> b = a;
  CHECK(place(a) == place(b));

  b.data()[0] = 9;
  CHECK(place(a) != place(b));
  CHECK(test::same_bits(a, Tensor<TestType>({2, 2}, {1, 2, 3, 4})));
  CHECK(test::same_bits(b, Tensor<TestType>({2, 2}, {9, 2, 3, 4})));

  const TestType* const alone = place(b);
  CHECK(b.data() == alone);  // the only owner writes in place
}

TEMPLATE_TEST_CASE("a write to the original does not reach a copy", "[core]", float, double) {
  Tensor<TestType> a({3}, {1, 2, 3});
  const Tensor<TestType> before = a;
  Tensor<TestType> view = a.reshape({3, 1});

  a.data()[1] = -2;
  CHECK(before.data()[1] == 2);
  CHECK(std::as_const(view).data()[1] == 2);
  view.data()[2] = 7;
  CHECK(before.data()[2] == 3);
  CHECK(std::as_const(a).data()[2] == 3);
}

TEST_CASE("what a closure captured stays as it was", "[core]") {
  Tensor<float> x({2}, {1, 2});
  const auto sum = [x] { return x.data()[0] + x.data()[1]; };
  x.data()[0] = 100;
  CHECK(sum() == 3);
  x = Tensor<float>::zeros({2});
  CHECK(sum() == 3);
}

TEST_CASE("a tensor outlives the one it was copied or reshaped from", "[core]") {
  Tensor<double> kept;
  CHECK(kept.empty());
  {
    const Tensor<double> x({2, 3}, {1, 2, 3, 4, 5, 6});
    kept = x.reshape({3, 2});
  }
  CHECK(kept.shape() == Shape{3, 2});
  CHECK(kept.values().size() == 6);
  CHECK(kept.values()[5] == 6);
}

TEST_CASE("a moved tensor hands its storage over", "[core]") {
  Tensor<float> a({2}, {1, 2});
  const float* const at = place(a);
  Tensor<float> b = std::move(a);
  CHECK(b.data() == at);
}

TEMPLATE_TEST_CASE("zeros and full hold one value everywhere", "[core]", float, double) {
  const auto zeros = Tensor<TestType>::zeros({3, 5});
  const auto halves = Tensor<TestType>::full({4}, TestType(0.5));
  CHECK(zeros.size() == 15);
  for (const TestType v : zeros.values()) CHECK((v == 0 && !std::signbit(v)));
  for (const TestType v : halves.values()) CHECK(v == TestType(0.5));
}

TEMPLATE_TEST_CASE("uninitialized elements are NaN while poisoned", "[core]", float, double) {
  // Twice: the second may be a buffer that held the numbers of the first.
  for (int round = 0; round < 2; ++round) {
    auto x = Tensor<TestType>::uninitialized({257, 100});
    const auto values = std::as_const(x).values();
    CHECK(std::all_of(values.begin(), values.end(), [](TestType v) { return std::isnan(v); }));
    std::fill_n(x.data(), x.size(), TestType(1));
  }
}

TEST_CASE("a tensor without elements is a tensor", "[core]") {
  const auto x = Tensor<float>::zeros({0, 4});
  CHECK_FALSE(x.empty());
  CHECK(x.size() == 0);
  CHECK(x.values().empty());
  CHECK(x.reshape({4, 0}).shape() == Shape{4, 0});

  const Tensor<float> none;
  CHECK(none.empty());
  CHECK(none.size() == 0);
  CHECK(none.values().empty());
}

TEST_CASE("item is the only element", "[core]") {
  CHECK(Tensor<double>({}, {2.5}).item() == 2.5);
  CHECK(Tensor<double>({1, 1, 1}, {-4}).item() == -4);
  CHECK_THROWS_WITH(Tensor<float>({2, 1}, {1, 2}).item(), "item: (2,1) has 2 elements, not one");
  CHECK_THROWS_WITH(Tensor<float>::zeros({0}).item(), "item: (0) has 0 elements, not one");
  CHECK_THROWS_AS(Tensor<float>().item(), ShapeError);
}

TEST_CASE("a tensor takes as many values as its shape has", "[core][errors]") {
  CHECK_THROWS_WITH(Tensor<float>({2, 3}, {1, 2, 3, 4, 5}), "tensor: 5 values do not fill (2,3)");
  CHECK_THROWS_WITH(Tensor<double>({}, std::initializer_list<double>{}),
                    "tensor: 0 values do not fill ()");
  CHECK_THROWS_AS(Tensor<float>({1}, {1, 2}), ShapeError);
}

TEST_CASE("reshape keeps the elements and their number", "[core][errors]") {
  const Tensor<float> x({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor<float> y = x.reshape({3, 2});
  CHECK(std::equal(x.values().begin(), x.values().end(), y.values().begin()));
  CHECK_THROWS_WITH(x.reshape({4, 2}), "reshape: 6 elements of (2,3) do not fill (4,2)");
  CHECK_THROWS_AS(Tensor<float>().reshape({1}), ShapeError);
}

TEST_CASE("convert rounds to the nearest float and back without loss", "[core]") {
  const Tensor<double> x({2, 2}, {0.1, -3, 1e-50, 16777217});
  const Tensor<float> y = convert<float>(x);
  CHECK(test::same_bits(y, Tensor<float>({2, 2}, {0.1F, -3, 0, 16777216})));
  CHECK(test::same_bits(convert<float>(convert<double>(y)), y));
  CHECK(test::same_bits(convert<double>(Tensor<float>({1}, {0.1F})),
                        Tensor<double>({1}, {static_cast<double>(0.1F)})));
}

TEST_CASE("converting no tensor gives no tensor", "[core]") {
  CHECK(convert<double>(Tensor<float>()).empty());
}

TEST_CASE("a tensor that no memory can hold is refused", "[core][errors]") {
  // 2^61 doubles are 2^64 bytes: counted in 64 bits that would be none at all. Poison would write.
  const PoisonOff off;
  CHECK_THROWS(Tensor<double>::uninitialized({Index{1} << 61}));
  CHECK_THROWS(Tensor<double>::uninitialized({(Index{1} << 61) + 8}));
  CHECK_THROWS(Tensor<float>::uninitialized({(Index{1} << 62) / 3 * 2}));
  CHECK_THROWS(Tensor<float>::uninitialized({(Index{1} << 61) - 1}));
  CHECK_THROWS(Tensor<double>::uninitialized({(Index{1} << 60) - 1}));
}
