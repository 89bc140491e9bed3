#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/kernels.hpp"
#include "support/catch.hpp"
#include "support/guarded.hpp"
#include "support/numbers.hpp"

using namespace headwise;
using namespace headwise::test;
using test::for_each_row;
using test::gap;
using test::Guarded;
using test::kEps;

namespace {

/// Mean, standard deviation, 1/sqrt(variance + eps) and (x - mean) times it, in double.
struct Plain {
  double mean = 0, deviation = 0, rstd = 0;
  std::vector<double> xhat;
};

template <Real T>
Plain plain(const Guarded<T>& x, T eps) {
  Plain p;
  const auto n = static_cast<double>(x.size());
  double squares = 0;
  for (Index i = 0; i < x.size(); ++i) {
    p.mean += static_cast<double>(x[i]) / n;
    // x[i] - mean as the mean of differences, which does not depend on how large the mean is.
    double away = 0;
    for (Index j = 0; j < x.size(); ++j)
      away += (static_cast<double>(x[i]) - static_cast<double>(x[j])) / n;
    p.xhat.push_back(away);
    squares += away * away / n;
  }
  p.deviation = std::sqrt(squares);
  p.rstd = 1 / std::sqrt(squares + static_cast<double>(eps));
  for (double& v : p.xhat) v *= p.rstd;
  return p;
}

template <Real T>
constexpr T kLayerNormEps = T(1e-5);

// Two sums of up to 17 in a lane, a root and four products round about once each.
constexpr double kUnits = 8;

}  // namespace

TEMPLATE_TEST_CASE("layer norm equals the plain formula", "[kernels]", float, double) {
  using T = TestType;
  Rng rng(1);
  for_each_row([&](Index n, Index offset) {
    Guarded<T> x(n, offset), gain(n, (offset * 3 + 1) % 16), bias(n, (offset * 5 + 2) % 16);
    x.fill(rng, 2, 3);
    gain.fill(rng, 0.5, 1);
    bias.fill(rng);
    const Plain p = plain(x, kLayerNormEps<T>);
    for (const bool gained : {true, false})
      for (const bool biased : {true, false}) {
        CAPTURE(n, offset, gained, biased);
        std::vector<double> want = p.xhat;
        double most = 0;
        for (std::size_t i = 0; i < want.size(); ++i) {
          const auto at = static_cast<Index>(i);
          if (gained) want[i] *= static_cast<double>(gain[at]);
          most = std::max(most, std::fabs(want[i]));
          if (biased) want[i] += static_cast<double>(bias[at]);
          most = std::max(most, std::fabs(want[i]));
        }
        Guarded<T> y(n, (offset * 7 + 3) % 16);
        const auto stats =
            kernels::layer_norm<T>(x.data(), gained ? gain.data() : nullptr,
                                   biased ? bias.data() : nullptr, kLayerNormEps<T>, y.data(), n);
        REQUIRE(gap(y, want, most) <= kUnits);
        REQUIRE((x.intact() && gain.intact() && bias.intact() && y.intact()));
        const double mean = static_cast<double>(stats.mean) + static_cast<double>(stats.mean_rest);
        REQUIRE(std::fabs(mean - p.mean) <=
                kUnits * kEps<T> * p.deviation + 4 * kEps<double> * std::fabs(p.mean));
        REQUIRE(std::fabs(static_cast<double>(stats.rstd) / p.rstd - 1) <= kUnits * kEps<T>);
      }
  });
}

TEMPLATE_TEST_CASE("layer norm is right for rows with a large mean", "[kernels]", float, double) {
  using T = TestType;
  const auto normed = [](const Guarded<T>& x) {
    std::vector<T> y(static_cast<std::size_t>(x.size()));
    kernels::layer_norm<T>(x.data(), nullptr, nullptr, kLayerNormEps<T>, y.data(), x.size());
    return y;
  };
  const auto near = [](T a, double b) { return std::fabs(static_cast<double>(a) - b) < 1e-3; };

  const std::vector<T> four = normed({40000, 40001, 40002, 40003});
  CHECK((near(four[0], -1.3416354) && near(four[1], -0.4472118)));
  CHECK((near(four[2], 0.4472118) && near(four[3], 1.3416354)));

  Guarded<T> flat(256, 0), slope(16, 0);
  flat.fill(T(1234));
  for (const T v : normed(flat)) CHECK(v == 0);

  for (Index i = 0; i < 16; ++i)  // as float holds them, in both precisions
    slope[i] = static_cast<T>(static_cast<float>(1000 + 0.001 * static_cast<double>(i)));
  const std::vector<T> y = normed(slope);
  CHECK(near(y.front(), -1.341508));
  CHECK(near(y.back(), 1.344237));
}

TEMPLATE_TEST_CASE("a large mean costs layer norm no digits", "[kernels]", float, double) {
  using T = TestType;
  Rng rng(2);
  for (const double mean : {1e3, -1e4, 1e5})
    for (Index n = 2; n <= 67; ++n) {
      CAPTURE(mean, n);
      Guarded<T> x(n, n % 16), y(n, 0);
      x.fill(rng, 1, mean);
      x[0] = static_cast<T>(mean - 2);  // so that rows of two differ too
      x[1] = static_cast<T>(mean + 2);
      const Plain p = plain(x, kLayerNormEps<T>);
      kernels::layer_norm<T>(x.data(), nullptr, nullptr, kLayerNormEps<T>, y.data(), n);
      REQUIRE(gap(y, p.xhat) <= kUnits);
    }
}

TEMPLATE_TEST_CASE("a NaN anywhere makes the whole normed row NaN", "[kernels]", float, double) {
  using T = TestType;
  Rng rng(3);
  for (Index n = 1; n <= 67; ++n)
    for (Index at = 0; at < n; ++at) {
      CAPTURE(n, at);
      Guarded<T> x(n, at % 16), y(n, n % 16);
      x.fill(rng);
      x[at] = static_cast<T>(kNaN);
      kernels::layer_norm<T>(x.data(), nullptr, nullptr, kLayerNormEps<T>, y.data(), n);
      REQUIRE(test::all_of(y, [&](Index i) { return std::isnan(y[i]); }));
    }
}

TEMPLATE_TEST_CASE("rms norm and its backward equal the plain formulas", "[kernels]", float,
                   double) {
  using T = TestType;
  Rng rng(5);
  for_each_row([&](Index n, Index offset) {
    Guarded<T> x(n, offset), gain(n, (offset * 3 + 1) % 16), dy(n, (offset * 5 + 2) % 16);
    x.fill(rng, 2, 1);
    gain.fill(rng, 0.5, 1);
    dy.fill(rng);
    const auto count = static_cast<double>(n);
    double squares = 0;
    for (Index i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    const double rms = 1 / std::sqrt(squares / count + static_cast<double>(kLayerNormEps<T>));
    for (const bool gained : {true, false})
      for (const bool wanted : {true, false}) {
        CAPTURE(n, offset, gained, wanted);
        Guarded<T> y(n, (offset * 7 + 3) % 16), dx(n, (offset * 9 + 4) % 16), dgain(n, offset);
        dgain.fill(rng);
        std::vector<double> want_y, want_dgain, want_dx, g;
        double mean = 0, most_g = 0, most_x = 0;
        for (Index i = 0; i < n; ++i) {
          const double factor = gained ? static_cast<double>(gain[i]) : 1;
          const double xhat = static_cast<double>(x[i]) * rms, up = static_cast<double>(dy[i]);
          want_y.push_back(xhat * factor);
          want_dgain.push_back(static_cast<double>(dgain[i]) + (wanted ? up * xhat : 0));
          g.push_back(up * factor);
          mean += g.back() * xhat / count;
          most_g = std::max(most_g, std::fabs(g.back()));
          most_x = std::max(most_x, std::fabs(xhat));
        }
        for (Index i = 0; i < n; ++i)
          want_dx.push_back(
              rms * (g[static_cast<std::size_t>(i)] - static_cast<double>(x[i]) * rms * mean));
        const T* w = gained ? gain.data() : nullptr;
        const T found = kernels::rms_norm<T>(x.data(), w, kLayerNormEps<T>, y.data(), n);
        kernels::rms_norm_backward<T>(x.data(), found, w, dy.data(), dx.data(),
                                      wanted ? dgain.data() : nullptr, n);
        REQUIRE(std::fabs(static_cast<double>(found) / rms - 1) <= kUnits * kEps<T>);
        REQUIRE(gap(y, want_y) <= kUnits);
        // The two terms cancel (for one element all but wholly): measured by what they are.
        REQUIRE(gap(dx, want_dx, rms * most_g * (1 + most_x * most_x)) <= kUnits);
        REQUIRE(gap(dgain, want_dgain, 1 + most_x * 4) <= kUnits);
        REQUIRE((x.intact() && gain.intact() && dy.intact() && y.intact()));
        REQUIRE((dx.intact() && dgain.intact()));
      }
  });
}

TEMPLATE_TEST_CASE("layer norm backward equals the plain formula", "[kernels]", float, double) {
  using T = TestType;
  Rng rng(4);
  for_each_row([&](Index n, Index offset) {
    Guarded<T> x(n, offset), gain(n, (offset * 3 + 1) % 16), dy(n, (offset * 5 + 2) % 16);
    x.fill(rng, 2, 3);
    gain.fill(rng, 0.5, 1);
    dy.fill(rng);
    const Plain p = plain(x, kLayerNormEps<T>);
    const T mean = static_cast<T>(p.mean);
    double rest = 0;
    for (Index i = 0; i < n; ++i) rest += static_cast<double>(x[i] - mean) / static_cast<double>(n);
    const kernels::NormStats<T> stats{mean, static_cast<T>(rest), static_cast<T>(p.rstd)};
    for (const bool gained : {true, false})
      for (const bool wanted : {true, false}) {
        CAPTURE(n, offset, gained, wanted);
        Guarded<T> dx(n, (offset * 7 + 3) % 16), dgain(n, (offset * 9 + 4) % 16);
        dgain.fill(rng);
        const bool adds = (n + offset) % 2 == 0;
        if (adds)
          dx.fill(rng);
        else
          dx.fill(static_cast<T>(kNaN));  // must not be read
        std::vector<double> g, want_dgain, want_dx;
        double mean_g = 0, mean_gx = 0, most_g = 0, most_x = 0;
        for (Index i = 0; i < n; ++i) {
          const double up = static_cast<double>(dy[i]), xhat = p.xhat[static_cast<std::size_t>(i)];
          g.push_back(gained ? up * static_cast<double>(gain[i]) : up);
          mean_g += g.back() / static_cast<double>(n);
          mean_gx += g.back() * xhat / static_cast<double>(n);
          most_g = std::max(most_g, std::fabs(g.back()));
          most_x = std::max(most_x, std::fabs(xhat));
          want_dgain.push_back(static_cast<double>(dgain[i]) + (wanted ? up * xhat : 0));
        }
        for (std::size_t i = 0; i < g.size(); ++i)
          want_dx.push_back(p.rstd * (g[i] - mean_g - p.xhat[i] * mean_gx) +
                            (adds ? static_cast<double>(dx[static_cast<Index>(i)]) : 0));
        kernels::layer_norm_backward<T>(x.data(), stats, gained ? gain.data() : nullptr, dy.data(),
                                        adds ? T(1) : T(0), dx.data(),
                                        wanted ? dgain.data() : nullptr, n);
        // The three terms cancel (for two elements all but wholly): measured by what they are.
        REQUIRE(gap(dx, want_dx, p.rstd * most_g * (1 + most_x) + (adds ? 4 : 0)) <= kUnits);
        REQUIRE(gap(dgain, want_dgain, 1 + most_x * 4) <= kUnits);
        REQUIRE((x.intact() && gain.intact() && dy.intact() && dx.intact() && dgain.intact()));
      }
  });
}
