#include "headwise/core/parallel.hpp"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <future>
#include <iterator>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/cpu_quota.hpp"
#include "core/single_thread.hpp"
#include "headwise/core/error.hpp"

namespace headwise {
namespace {

/// What the default number of threads follows from.
struct Cpus {
  int cores = std::max(1, omp_get_num_procs());  // heeds the process's affinity
  std::optional<double> quota = cpu_quota();
};

const Cpus& cpus() {
  static const Cpus found;
  return found;
}

std::atomic<int>& thread_count() {
  static std::atomic<int> count = default_threads();
  return count;
}

std::atomic<bool> forked = false;  // from a process with a team, which does not exist here

/// Called before this thread's first team of `team` threads; returns how many there can be. GCC's
/// OpenMP ends the process where the system refuses a thread, so they are tried first.
int possible_team(int team) {
  thread_local int tried = 1;
  if (team <= tried) return team;
  static std::once_flag once;
  std::call_once(once, [] { ::pthread_atfork(nullptr, nullptr, [] { forked = true; }); });
  const auto running = [] {
    std::error_code ignored;
    return std::distance(std::filesystem::directory_iterator("/proc/self/task", ignored), {});
  };
  const auto before = running();
  std::promise<void> all_there;
  const std::shared_future<void> go = all_there.get_future().share();
  std::vector<std::thread> made;
  try {
    while (static_cast<int>(made.size()) + 1 < team) made.emplace_back([go] { go.wait(); });
  } catch (const std::system_error&) {
  }
  all_there.set_value();
  for (std::thread& thread : made) thread.join();
  // A joined thread counts against the limit until the system has forgotten it.
  for (int i = 0; i < 1000 && running() > before; ++i)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  return tried = static_cast<int>(made.size()) + 1;
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

int threads() { return forked ? 1 : thread_count().load(); }

int default_threads() { return threads_for(cpus().cores, cpus().quota); }
std::string default_threads_reason() { return threads_reason(cpus().cores, cpus().quota); }

int make_threads() {
  const int can = possible_team(threads());
  if (can < threads()) thread_count() = can;
  return threads();
}

void set_threads(int n) {
  require<ParameterError>(n >= 1 && n <= 1024, "threads: must be in [1, 1024], got {}", n);
  thread_count() = n;
}

void parallel_for(Index n, Index grain, FunctionRef<void(Index begin, Index end)> body) {
  const Index blocks = (n + grain - 1) / grain;
  int team = static_cast<int>(std::min<Index>(threads(), blocks));
  if (team > 1 && !inside) team = std::min(team, make_threads());
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
