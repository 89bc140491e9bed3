// What the BLAS needs to know about threads, kept out of gemm.cpp.
#pragma once

#include <optional>

namespace headwise {

/// While alive and outside a parallel region, OpenMP's default number of threads is 1. For an
/// OpenBLAS that is itself built on OpenMP and reads that default at every call.
class SingleThread {
 public:
  SingleThread();
  ~SingleThread();
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;

 private:
  int before_ = 0;  // 0: inside a region, nothing to do
};

/// While alive, OpenBLAS works on the calling thread alone, whichever build of it is loaded: around
/// every call into it.
class OneBlasThread {
 public:
  OneBlasThread();  // in gemm.cpp

 private:
  std::optional<SingleThread> on_openmp_;
};

}  // namespace headwise
