// The golden numbers are what tests/golden/rng_golden.py prints.
#include "headwise/core/random.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "headwise/core/error.hpp"
#include "support/catch.hpp"

using namespace headwise;

namespace {

std::vector<std::uint32_t> draws(Rng rng, int n) {
  std::vector<std::uint32_t> words;
  for (int i = 0; i < n; ++i) words.push_back(rng.bits());
  return words;
}

/// sum (observed - expected)^2 / expected, for classes that are equally likely.
double chi_square(const std::vector<int>& counts) {
  const double expected =
      std::accumulate(counts.begin(), counts.end(), 0.0) / static_cast<double>(counts.size());
  double sum = 0;
  for (const int c : counts) sum += (c - expected) * (c - expected) / expected;
  return sum;
}

}  // namespace

TEST_CASE("philox gives the known answers of its authors", "[core]") {
  // kat_vectors of the Random123 distribution, philox4x32 with 10 rounds.
  using Words = std::array<std::uint32_t, 4>;
  constexpr std::uint32_t kOnes = 0xFFFFFFFF;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8});
  CHECK(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}) ==
        Words{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD});
  CHECK(philox({0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}, {0xA4093822, 0x299F31D0}) ==
        Words{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1});
}

TEST_CASE("a stream is the same words everywhere", "[core]") {
  CHECK(draws(Rng(0x0123456789ABCDEF, 0xFEDCBA9876543210), 6) ==
        std::vector<std::uint32_t>{0xAEF2ADF7, 0xF69B5950, 0x3CEB44F4, 0x89B6573A, 0xEC2AB39F,
                                   0x4671FD85});
}

TEST_CASE("normal numbers are the same everywhere", "[core]") {
  Rng rng(1);
  for (const double golden :
       {1.2279076057444946, 0.21656405195766373, 0.4454377144888909, -0.06121692363180966})
    CHECK(rng.normal() == Approx(golden).epsilon(1e-14));
}

TEST_CASE("the rarest numbers are finite and right", "[core]") {
  // Places in the streams of seed 1 whose first two words are all but zeros or ones, which no
  // million of draws meets. The first and the last are the ends of the range.
  struct Tail {
    std::uint64_t block, stream;
    double golden;
  };
  for (const auto& [block, stream, golden] : {
           Tail{0x1FBD5B10FD264EAD, 0xD45467C7CA90FF34, -8.209536151601386},
           Tail{0x0AA52E4FCC8A6183, 0x9972F54454E72466, -6.852123301585007},
           Tail{0x20D1183287E8806E, 0x5F5219FC215931CC, -6.240362614438864},
           Tail{0x0EB04DFCC4DE5741, 0x959F496FFC000A88, -6.230260063289477},
           Tail{0x1EA0A878BD1184E2, 0xB3086567F0441065, 7.786604801354371},
           Tail{0x1AD4F35783F5D6C4, 0x17DBE4DE869D858D, 8.209536151601386},
       }) {
    CAPTURE(golden);
    Rng rng(1, stream);
    rng.reserve(4 * block);
    Rng same = rng;
    CHECK(rng.normal() == Approx(golden).epsilon(1e-14));
    const double u = same.uniform();
    CHECK(u > 0);
    CHECK(u < 1);
  }
}

TEST_CASE("uniform numbers fill the interval evenly", "[core]") {
  Rng rng(11);
  constexpr int kDraws = 1000000;
  double sum = 0, squares = 0, least = 1, most = 0;
  std::vector<int> counts(16);
  for (int i = 0; i < kDraws; ++i) {
    const double u = rng.uniform();
    sum += u, squares += (u - 0.5) * (u - 0.5);
    least = std::min(least, u), most = std::max(most, u);
    ++counts.at(static_cast<std::size_t>(u * 16));
  }
  // Four standard deviations of each estimate.
  CHECK(std::fabs(sum / kDraws - 0.5) < 4 * std::sqrt(1.0 / 12 / kDraws));
  CHECK(std::fabs(squares / kDraws - 1.0 / 12) < 4 * std::sqrt(1.0 / 180 / kDraws));
  CHECK(chi_square(counts) < 37.7);  // 15 degrees of freedom, one in a thousand
  CHECK(least > 0);
  CHECK(least < 1e-4);
  CHECK(most > 1 - 1e-4);
  CHECK(most < 1);
}

TEST_CASE("normal numbers have the moments and the quantiles of the normal law", "[core]") {
  Rng rng(12);
  constexpr int kDraws = 1000000;
  const double quantiles[] = {-3.090232, -1.959964, -0.674490, 0, 1.281552, 2.326348};
  const double below[] = {0.001, 0.025, 0.25, 0.5, 0.9, 0.99};
  double moments[5] = {};
  int counts[6] = {};
  for (int i = 0; i < kDraws; ++i) {
    const double z = rng.normal();
    double power = 1;
    for (double& m : moments) m += power, power *= z;
    for (std::size_t q = 0; q < 6; ++q) counts[q] += z < quantiles[q];
  }
  // Four standard deviations: the powers of z have variances 1, 2, 15 and 96.
  const double expected[] = {1, 0, 1, 0, 3}, variance[] = {0, 1, 2, 15, 96};
  for (std::size_t k = 1; k < 5; ++k) {
    CAPTURE(k);
    CHECK(std::fabs(moments[k] / kDraws - expected[k]) < 4 * std::sqrt(variance[k] / kDraws));
  }
  for (std::size_t q = 0; q < 6; ++q) {
    CAPTURE(quantiles[q]);
    const double p = below[q];
    CHECK(std::fabs(static_cast<double>(counts[q]) / kDraws - p) <
          4 * std::sqrt(p * (1 - p) / kDraws));
  }
}

TEST_CASE("below is the same everywhere and even", "[core]") {
  Rng golden(3), wide(3);
  for (const Index n : {8, 1, 6, 7, 2, 5, 2, 6, 7, 7, 8, 3}) CHECK(golden.below(10) == n);
  constexpr Index kWide = Index{3} << 30;  // a quarter of all words are not fair to it
  for (const Index n : std::initializer_list<Index>{2630629913, 376321498, 2113286467, 2464980474,
                                                    864010104, 1776612717})
    CHECK(wide.below(kWide) == n);

  Rng rng(13);
  std::vector<int> sevens(7), residues(3);
  for (int i = 0; i < 70000; ++i) {
    ++sevens.at(static_cast<std::size_t>(rng.below(7)));
    // Without rejecting the unfair words, half of these would be multiples of three.
    ++residues.at(static_cast<std::size_t>(rng.below(kWide) % 3));
  }
  CHECK(chi_square(sevens) < 22.5);    // 6 degrees of freedom, one in a thousand
  CHECK(chi_square(residues) < 13.8);  // 2 degrees
}

TEST_CASE("below takes 1 to 2^32 - 1", "[core][errors]") {
  Rng rng(1);
  for (int i = 0; i < 10; ++i) CHECK(rng.below(1) == 0);
  CHECK(rng.below(0xFFFFFFFF) < 0xFFFFFFFF);
  CHECK_THROWS_WITH(rng.below(0), "random: below(0) is not from 1 to 2^32 - 1");
  CHECK_THROWS_WITH(rng.below(-1), "random: below(-1) is not from 1 to 2^32 - 1");
  CHECK_THROWS_WITH(rng.below(Index{1} << 32),
                    "random: below(4294967296) is not from 1 to 2^32 - 1");
  CHECK_THROWS_AS(rng.below(0), ShapeError);
}

TEST_CASE("a permutation has every number once and is the same everywhere", "[core]") {
  CHECK(Rng(5).permutation(12) == std::vector<Index>{6, 4, 7, 5, 10, 3, 1, 2, 8, 11, 0, 9});
  CHECK(Rng(5).permutation(0).empty());
  CHECK(Rng(5).permutation(1) == std::vector<Index>{0});
  std::vector<Index> order = Rng(6).permutation(1000);
  CHECK_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (Index i = 0; i < 1000; ++i) REQUIRE(order[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("every order of three is equally likely", "[core]") {
  Rng rng(14);
  std::vector<int> counts(27);
  for (int i = 0; i < 60000; ++i) {
    const std::vector<Index> p = rng.permutation(3);
    ++counts.at(static_cast<std::size_t>(p[0] * 9 + p[1] * 3 + p[2]));
  }
  std::erase(counts, 0);
  REQUIRE(counts.size() == 6);
  CHECK(chi_square(counts) < 20.6);  // 5 degrees of freedom, one in a thousand
}

TEST_CASE("seeds and streams differ in all of their bits", "[core]") {
  std::set<std::vector<std::uint32_t>> seen;
  int streams = 0;
  const auto add = [&](std::uint64_t seed, std::uint64_t stream) {
    seen.insert(draws(Rng(seed, stream), 4));
    ++streams;
  };
  add(0, 0);
  for (int bit = 0; bit < 64; ++bit) {
    add(std::uint64_t{1} << bit, 0);
    add(0, std::uint64_t{1} << bit);
  }
  CHECK(seen.size() == static_cast<std::size_t>(streams));
  CHECK(draws(Rng(7), 100) == draws(Rng(7, 0), 100));
}

TEST_CASE("streams of one seed do not follow each other", "[core]") {
  Rng a(1, 0), b(1, 1);
  constexpr int kDraws = 100000;
  double product = 0;
  for (int i = 0; i < kDraws; ++i) product += a.normal() * b.normal();
  CHECK(std::fabs(product / kDraws) < 4 / std::sqrt(double{kDraws}));
}

TEST_CASE("four are the draws of a block whatever the position", "[core]") {
  Rng rng(9, 2);
  const std::vector<std::uint32_t> words = draws(rng, 40);
  for (std::uint64_t b = 0; b < 10; ++b) {
    rng.bits();
    const auto block = rng.four(b);
    CHECK(
        std::equal(block.begin(), block.end(), words.begin() + static_cast<std::ptrdiff_t>(4 * b)));
  }
  CHECK(rng.position() == 10);
  CHECK(rng.bits() == words[10]);  // looking elsewhere has not moved it
}

TEST_CASE("reserve sets draws aside from a multiple of four on", "[core]") {
  const std::vector<std::uint32_t> words = draws(Rng(9, 2), 40);
  for (const std::uint64_t before : {0U, 1U, 3U, 4U, 5U, 8U})
    for (const std::uint64_t n : {0U, 1U, 4U, 6U}) {
      CAPTURE(before, n);
      Rng rng(9, 2);
      for (std::uint64_t i = 0; i < before; ++i) rng.bits();
      Rng aside = rng.reserve(n);
      const std::uint64_t first = (before + 3) / 4 * 4;
      CHECK(aside.position() == first);
      CHECK(rng.position() == first + n);
      CHECK(aside.bits() == words[first]);
      CHECK(rng.bits() == words[first + n]);
    }
}
