// Draws a token from a model's logits.
#pragma once

#include <span>
#include <vector>

#include "headwise/core/ids.hpp"
#include "headwise/core/random.hpp"

namespace headwise {

/// Which tokens may be drawn, and how often. visit() serves the command line and its help.
struct Drawing {
  double temperature = 1;
  Index top_k = 0;
  double top_p = 1;

  void visit(auto&& v) {
    v("temperature", temperature, "below 1: more likely tokens; 0: always the likeliest");
    v("top-k", top_k, "draw among this many of the likeliest tokens; 0: among all");
    v("top-p", top_p, "draw among the likeliest tokens that have this probability together");
  }
  /// Throws UsageError, naming option and value.
  void validate() const;
};

/// Draws tokens by softmax(logits / temperature), of which
///   top_k keeps the k largest (Fan et al. 2018, arXiv:1805.04833, sec. 5.2), and then
///   top_p the fewest of the largest whose probability, among those, is at least p (Holtzman et al.
///     2020, arXiv:1904.09751, sec. 3.1).
/// Among equals the lowest ids come first. After its first draw it takes no memory.
class Drawer {
 public:
  /// Throws UsageError as drawing.validate() does.
  explicit Drawer(const Drawing& drawing);

  /// The next token from logits (V), by one random number. For temperature 0 the largest, and no
  /// random number. Throws Error when the logits are not finite; -Inf alone is a token never drawn.
  template <Real T>
  Id draw(std::span<const T> logits, Rng& rng);

 private:
  struct Token {
    Id id;
    double weight;  ///< its probability, times the same for all
  };
  template <class Before>
  void keep_most_likely(double p, Before before);

  Drawing drawing_;
  std::vector<double> weights_;  ///< of every token
  std::vector<Token> tokens_;    ///< those that a filter leaves
};

}  // namespace headwise
