// A thread count that holds for a scope.
#pragma once

#include "headwise/core/parallel.hpp"

namespace headwise::test {

/// Sets the number of threads; the number before comes back at the end of the scope.
class ThreadCount {
 public:
  explicit ThreadCount(int n) { set_threads(n); }
  ~ThreadCount() { set_threads(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_ = threads();
};

}  // namespace headwise::test
