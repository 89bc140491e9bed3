// A number of threads for the length of a test.
#pragma once

#include "headwise/core/parallel.hpp"

namespace headwise::test {

/// Sets the number of threads, and puts it back. Many tiny products are fastest with one: beside
/// other busy processes a parallel region waits for its threads a thousand times longer than it
/// works.
class Threads {
 public:
  explicit Threads(int n) : before_(threads()) { set_threads(n); }
  ~Threads() { set_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace headwise::test
