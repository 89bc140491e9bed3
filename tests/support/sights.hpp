// Masks, and what they mean in the test's own words.
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headwise/ops/mask.hpp"
#include "support/plain_attention.hpp"

namespace headwise::test {

/// A mask, said a second time in the test's own words.
struct Sight {
  std::string name;
  std::function<Mask(const PlainSizes& n)> mask;
  std::function<double(const PlainSizes& n, Index b, Index h, Index t, Index s)> added;
};

/// One that is the same for all heads of all sequences, and adds nothing.
inline Sight plain_sight(std::string name, std::function<Mask(Index t, Index s)> mask,
                         std::function<bool(Index t, Index s, Index queries, Index keys)> sees) {
  return {std::move(name), [mask](const PlainSizes& n) { return mask(n.t, n.s); },
          [sees](const PlainSizes& n, Index, Index, Index t, Index s) {
            return sees(t, s, n.t, n.s) ? 0 : kUnseen;
          }};
}

inline const auto hole = [](Index t, Index s) { return t % 11 != 2 && (t * 7 + s * 3) % 5 != 0; };

/// A sliding window, and documents packed into one sequence: whole stretches of keys go unseen.
inline const auto near = [](Index t, Index s) { return s <= t && s > t - 20; };
inline const auto same_document = [](Index t, Index s) { return s <= t && s / 45 == t / 45; };

inline std::vector<Sight> sights() {
  return {plain_sight(
              "causal", [](Index, Index) { return causal(); },
              [](Index t, Index s, Index n, Index m) { return s <= t + m - n; }),
          plain_sight(
              "everything", [](Index, Index) { return everything(); },
              [](Index, Index, Index, Index) { return true; }),
          plain_sight(
              "allow", [](Index n, Index m) { return allow(n, m, hole); },
              [](Index t, Index s, Index, Index) { return hole(t, s); }),
          plain_sight(
              "causal with holes", [](Index n, Index m) { return causal() & allow(n, m, hole); },
              [](Index t, Index s, Index n, Index m) { return s <= t + m - n && hole(t, s); }),
          plain_sight(
              "window", [](Index n, Index m) { return allow(n, m, near); },
              [](Index t, Index s, Index, Index) { return near(t, s); }),
          plain_sight(
              "documents", [](Index n, Index m) { return allow(n, m, same_document); },
              [](Index t, Index s, Index, Index) { return same_document(t, s); })};
}

/// Of three sequences: one that is whole, one that is two thirds padding, one with nothing at all.
inline Index length(Index b, Index keys) { return b == 0 ? keys : b == 1 ? keys / 3 : 0; }

inline Mask padding(const PlainSizes& n) {
  std::vector<Index> lengths;
  for (Index b = 0; b < n.b; ++b) lengths.push_back(length(b, n.s));
  return keys_below(lengths);
}

/// Distances, steeper from head to head, and some keys that nobody may look at. Gentle: a float
/// score of 100 is rounded by more than the tolerance.
inline double slope(Index h, Index t, Index s) {
  return (t + 2 * s) % 7 == 3 ? kUnseen : -static_cast<double>((h + 1) * std::abs(t - s)) / 128;
}
inline const auto wave = [](Index b, Index h, Index t, Index s) {
  return std::sin(static_cast<double>(b * 31 + h * 17 + t * 3 + s * s));
};

/// A table of a bias: of rank 2 (T,S), 3 (H,T,S) or 4 (B,H,T,S).
inline Tensor<double> table(const PlainSizes& n, Index rank, Added value) {
  const std::array<Index, 4> sizes = {rank > 3 ? n.b : 1, rank > 2 ? n.heads : 1, n.t, n.s};
  Tensor<double> x =
      Tensor<double>::uninitialized(Shape(std::span(sizes).last(static_cast<std::size_t>(rank))));
  double* out = x.data();
  for (Index b = 0; b < sizes[0]; ++b)
    for (Index h = 0; h < sizes[1]; ++h)
      for (Index t = 0; t < n.t; ++t)
        for (Index s = 0; s < n.s; ++s) *out++ = value(b, h, t, s);
  return x;
}

inline Mask slopes(const PlainSizes& n) {
  return bias(table(n, 3, [](Index, Index h, Index t, Index s) { return slope(h, t, s); }));
}
inline Mask waves(const PlainSizes& n) { return bias(table(n, 4, wave)); }

inline double seen_if(bool sees) { return sees ? 0 : kUnseen; }

/// Those that tell sequences or heads apart, and masks put together.
inline std::vector<Sight> mixed_sights() {
  using N = const PlainSizes&;
  return {
      {"offset", [](N) { return causal(3); },
       [](N, Index, Index, Index t, Index s) { return seen_if(s <= t + 3); }},
      {"offset beyond the keys", [](N) { return causal(std::numeric_limits<Index>::max()); },
       [](N, Index, Index, Index, Index) { return 0; }},
      {"two causals", [](N) { return causal(5) & causal() & causal(8); },
       [](N n, Index, Index, Index t, Index s) {
         return seen_if(s <= t + std::min<Index>(5, n.s - n.t));
       }},
      {"padding", padding,
       [](N n, Index b, Index, Index, Index s) { return seen_if(s < length(b, n.s)); }},
      {"padding, causal, with holes",
       [](N n) { return padding(n) & causal() & allow(n.t, n.s, hole); },
       [](N n, Index b, Index, Index t, Index s) {
         return seen_if(s < length(b, n.s) && s <= t + n.s - n.t && hole(t, s));
       }},
      {"two paddings",
       [](N n) {
         return padding(n) & keys_below(std::vector<Index>(static_cast<std::size_t>(n.b), n.s / 2));
       },
       [](N n, Index b, Index, Index, Index s) {
         return seen_if(s < std::min(length(b, n.s), n.s / 2));
       }},
      {"two tables", [](N n) { return allow(n.t, n.s, hole) & allow(n.t, n.s, near); },
       [](N, Index, Index, Index t, Index s) { return seen_if(hole(t, s) && near(t, s)); }},
      {"bias of all heads", [](N n) { return bias(table(n, 2, wave)); },
       [](N, Index, Index, Index t, Index s) { return wave(0, 0, t, s); }},
      {"bias of each head", slopes,
       [](N, Index, Index h, Index t, Index s) { return slope(h, t, s); }},
      {"bias of each sequence", waves,
       [](N, Index b, Index h, Index t, Index s) { return wave(b, h, t, s); }},
      {"two biases", [](N n) { return slopes(n) & waves(n); },
       [](N, Index b, Index h, Index t, Index s) { return slope(h, t, s) + wave(b, h, t, s); }},
      {"all at once",
       [](N n) { return waves(n) & allow(n.t, n.s, hole) & causal(20) & slopes(n) & padding(n); },
       [](N n, Index b, Index h, Index t, Index s) {
         return seen_if(s < length(b, n.s) && s <= t + 20 && hole(t, s)) + slope(h, t, s) +
                wave(b, h, t, s);
       }}};
}

inline const std::vector<std::pair<Index, Index>> kSomeSizes = {
    {1, 1}, {1, 6}, {5, 5}, {4, 9}, {9, 4}, {33, 33}, {34, 70}, {70, 70}, {70, 40}, {66, 67}};

}  // namespace headwise::test
