#include "headwise/core/parallel.hpp"

#include <omp.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

#include "core/single_thread.hpp"
#include "headwise/core/error.hpp"

namespace headwise {
namespace {

int& thread_count() {
  static int count = std::max(1, omp_get_num_procs());  // heeds the process's affinity
  return count;
}

thread_local bool inside = false;  // this thread works for a parallel_for already
thread_local int this_worker = 0;  // in the innermost one

/// While alive, this thread is that worker.
class AsWorker {
 public:
  explicit AsWorker(int worker) : before_(std::exchange(this_worker, worker)) {}
  ~AsWorker() { this_worker = before_; }
  AsWorker(const AsWorker&) = delete;
  AsWorker& operator=(const AsWorker&) = delete;

 private:
  int before_;
};

/// The exception of the first block that threw, whoever ran it and whenever.
class FirstException {
 public:
  void keep(Index block) {
    const std::lock_guard lock(mutex_);
    if (!exception_ || block < block_) exception_ = std::current_exception(), block_ = block;
  }
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr exception_;
  Index block_ = 0;
};

}  // namespace

int threads() { return thread_count(); }

void set_threads(int n) {
  require<UsageError>(n >= 1 && n <= 1024, "threads: {} is not from 1 to 1024", n);
  thread_count() = n;
}

void parallel_for(Index n, Index grain, FunctionRef<void(Index begin, Index end)> body) {
  const Index blocks = (n + grain - 1) / grain;
  const int team = static_cast<int>(std::min<Index>(threads(), blocks));
  if (team <= 1 || inside) {
    const AsWorker first(0);
    for (Index i = 0; i < blocks; ++i) body(i * grain, std::min(n, (i + 1) * grain));
    return;
  }
  FirstException failure;
#pragma omp parallel num_threads(team)
  {
    inside = true;
    const AsWorker mine(omp_get_thread_num());
#pragma omp for schedule(dynamic)
    for (Index i = 0; i < blocks; ++i) {
      try {
        body(i * grain, std::min(n, (i + 1) * grain));
      } catch (...) {
        failure.keep(i);
      }
    }
    inside = false;
  }
  failure.rethrow();
}

int workers() { return inside ? 1 : threads(); }
int worker() { return this_worker; }

void parallel_rows(Index rows, Index n, FunctionRef<void(Index begin, Index end)> body) {
  constexpr Index kElements = 16 * 1024;
  parallel_for(rows, std::max<Index>(1, kElements / std::max<Index>(1, n)), body);
}

SingleThread::SingleThread() {
  if (omp_in_parallel() != 0) return;
  before_ = omp_get_max_threads();
  omp_set_num_threads(1);
}

SingleThread::~SingleThread() {
  if (before_ != 0) omp_set_num_threads(before_);
}

}  // namespace headwise
