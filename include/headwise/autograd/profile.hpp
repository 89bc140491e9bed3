// Where the time of a step goes, by op.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "headwise/core/shape.hpp"

namespace headwise {

/// What was measured of something that ran `calls` times.
struct Cost {
  Index calls = 0;
  double seconds = 0;
  double flops = 0;  ///< of its matrix products, what a mask hides not counted
  double bytes = 0;  ///< its tensors, each read or written once: the least memory has to move
};

/// Costs by name, forward and backward apart. A Tape that is given one adds each op to it.
class Profile {
 public:
  struct Row {
    Cost forward, backward;
  };

  void forward(std::string_view name, const Cost& cost) { add(row(name).forward, cost); }
  void backward(std::string_view name, const Cost& cost) { add(row(name).backward, cost); }
  /// Adds another profile's costs, its seconds times `share`: 1/n of what n threads did at once.
  void merge(const Profile& other, double share);
  [[nodiscard]] const std::map<std::string, Row, std::less<>>& rows() const { return rows_; }

 private:
  Row& row(std::string_view name);
  static void add(Cost& sum, const Cost& x);

  std::map<std::string, Row, std::less<>> rows_;
};

}  // namespace headwise
