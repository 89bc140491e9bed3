#include "headwise/core/gemm.hpp"

#include <cblas.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <mutex>
#include <set>

#include "core/blas_kernel.hpp"
#include "core/single_thread.hpp"
#include "headwise/core/parallel.hpp"

// What OpenBLAS does at its start to choose kernels, and undoes at its end; exported by builds that
// have a choice.
extern "C" {
[[gnu::weak]] void gotoblas_dynamic_init();
[[gnu::weak]] void gotoblas_dynamic_quit();
// Its work space.
[[gnu::weak]] void* blas_memory_alloc(int);
[[gnu::weak]] void blas_memory_free(void*);
}

namespace headwise {
namespace {

void blas(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, float alpha, const float* a,
          int lda, const float* b, int ldb, float beta, float* c, int ldc) {
  cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void blas(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, double alpha,
          const double* a, int lda, const double* b, int ldb, double beta, double* c, int ldc) {
  cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void blas_vector(CBLAS_TRANSPOSE t, int m, int n, float alpha, const float* a, int lda,
                 const float* x, int stride, float beta, float* y) {
  cblas_sgemv(CblasRowMajor, t, m, n, alpha, a, lda, x, stride, beta, y, 1);
}
void blas_vector(CBLAS_TRANSPOSE t, int m, int n, double alpha, const double* a, int lda,
                 const double* x, int stride, double beta, double* y) {
  cblas_dgemv(CblasRowMajor, t, m, n, alpha, a, lda, x, stride, beta, y, 1);
}

/// Whether this OpenBLAS runs on OpenMP; held to one thread of its own from here on.
bool blas_on_openmp() {
  static const bool openmp = [] {
    openblas_set_num_threads(1);
    return openblas_get_parallel() == 2;
  }();
  return openmp;
}

/// "0.3.21"
std::string blas_version() {
  const std::string config = openblas_get_config();  // "OpenBLAS 0.3.21 NO_LAPACKE ..."
  const std::size_t begin = config.find(' ') + 1;
  return config.substr(begin, config.find(' ', begin) - begin);
}

int blas_int(Index n) {
  require(n <= std::numeric_limits<int>::max(), "gemm: {} is more than the BLAS can count", n);
  return static_cast<int>(n);
}

/// Calls f(i, j, rows, cols) for the tiles of a product with m x n results and k terms each.
/// Measured: the tallest tile of at most 512 rows that leaves eight of them, else 128 rows; few
/// rows are cut by columns too where those are many, and by halves where there is little of both. A
/// weight's gradient (far more terms than rows) is cut into an even number of tiles of 192 rows or
/// so: 5 % faster, and the tiles of its input's gradient fill what threads that leaves idle.
template <class F>
void for_each_tile(Index m, Index n, Index k, F f) {
  Index rows = 128, cols = n;
  if (m > 256) {
    for (const Index tall : {512, 256})
      if (rows == 128 && (m + tall - 1) / tall >= 8) rows = tall;
    if (rows == 128 && k >= 2 * m) {
      const Index pairs = std::max<Index>(1, (m + 192) / 384);
      rows = ((m + 2 * pairs - 1) / (2 * pairs) + 15) / 16 * 16;
    }
  } else if (n >= 768) {
    rows = 256, cols = 384;
  } else if (m <= 128) {
    rows = 64;
  }
  for (Index i = 0; i < m; i += rows)
    for (Index j = 0; j < n; j += cols) f(i, j, std::min(rows, m - i), std::min(cols, n - j));
}

}  // namespace

namespace {

/// OpenBLAS takes work space for each call that runs at the same time, of this size in Debian's
/// builds, and keeps it; where the system refuses it, it tries again for ever. So each thread,
/// before its first call, sees to it that there are as many as threads that call.
class WorkSpace {
 public:
  WorkSpace() {
    if (blas_memory_alloc == nullptr || blas_memory_free == nullptr) return;
    const std::lock_guard lock(mutex());
    while (known().size() <= callers()) add_one();
    ++callers();
    counted_ = true;
  }
  ~WorkSpace() {
    if (!counted_) return;
    const std::lock_guard lock(mutex());
    --callers();
  }
  WorkSpace(const WorkSpace&) = delete;
  WorkSpace& operator=(const WorkSpace&) = delete;

 private:
  static constexpr std::size_t kBytes = std::size_t{129} << 20;

  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::set<void*>& known() {
    static std::set<void*> all;
    return all;
  }
  static std::size_t& callers() {
    static std::size_t n = 0;
    return n;
  }

  /// Holds those that are there until the BLAS must make one.
  static void add_one() {
    std::vector<void*> held;
    bool is_new = false;
    while (!is_new && can_map()) {
      held.push_back(blas_memory_alloc(0));
      is_new = known().insert(held.back()).second;
    }
    for (void* const space : held) blas_memory_free(space);
    require<Error>(
        is_new,
        "matrix products: out of memory: {} MiB of work space per thread, {} thread(s) have it",
        kBytes >> 20, callers());
  }
  static bool can_map() {
    void* const p =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p != MAP_FAILED && ::munmap(p, kBytes) == 0;
  }

  bool counted_ = false;
};

}  // namespace

OneBlasThread::OneBlasThread() {
  thread_local const WorkSpace space;
  if (blas_on_openmp()) on_openmp_.emplace();
}

template <Real T>
void gemm_tile(T alpha, Mat<const T> a, Mat<const T> b, T beta, Mat<T> c) {
  require(a.cols == b.rows && a.rows == c.rows && b.cols == c.cols,
          "gemm: ({},{}) times ({},{}) does not fit ({},{})", a.rows, a.cols, b.rows, b.cols,
          c.rows, c.cols);
  require(!c.transposed, "gemm: the result of one tile cannot be transposed");
  if (c.rows == 0 || c.cols == 0) return;
  const auto op = [](bool transposed) { return transposed ? CblasTrans : CblasNoTrans; };
  const auto ld = [](Index n) { return blas_int(std::max<Index>(n, 1)); };
  const OneBlasThread guard;
  if (c.rows == 1 && a.cols > 0) {  // a matrix product would pack b first, for one row in vain
    const bool rows_are_results = b.transposed;
    blas_vector(rows_are_results ? CblasNoTrans : CblasTrans,
                blas_int(rows_are_results ? b.cols : b.rows),
                blas_int(rows_are_results ? b.rows : b.cols), alpha, b.data, ld(b.ld), a.data,
                a.transposed ? ld(a.ld) : 1, beta, c.data);
    return;
  }
  blas(op(a.transposed), op(b.transposed), blas_int(c.rows), blas_int(c.cols), blas_int(a.cols),
       alpha, a.data, ld(a.ld), b.data, ld(b.ld), beta, c.data, ld(c.ld));
}

template <Real T>
void Products<T>::add(T alpha, Mat<const T> a, Mat<const T> b, T beta, Mat<T> c,
                      const Finish<T>* finish) {
  require(a.cols == b.rows && a.rows == c.rows && b.cols == c.cols,
          "gemm: ({},{}) times ({},{}) does not fit ({},{})", a.rows, a.cols, b.rows, b.cols,
          c.rows, c.cols);
  require(!c.transposed || finish == nullptr, "gemm: a transposed result has no finish");
  if (c.transposed) return add(alpha, b.t(), a.t(), beta, c.t());  // c^T = b^T a^T
  if (c.rows == 0 || c.cols == 0) return;
  const T *const begin = c.data, *const end = c.data + (c.rows - 1) * c.ld + c.cols;
  const auto next = results_.lower_bound(end);  // those waiting do not overlap each other
  if (next != results_.begin() && std::prev(next)->second > begin) run();
  results_.emplace(begin, end);
  for_each_tile(c.rows, c.cols, a.cols, [&](Index i, Index j, Index m, Index n) {
    tiles_.push_back({alpha, beta, a.block(i, 0, m, a.cols), b.block(0, j, b.rows, n),
                      c.block(i, j, m, n), i, j, finish});
  });
}

template <Real T>
void Products<T>::run() {
  parallel_for(static_cast<Index>(tiles_.size()), 1, [&](Index begin, Index) {
    const Tile& t = tiles_[static_cast<std::size_t>(begin)];
    gemm_tile(t.alpha, t.a, t.b, t.beta, t.c);
    if (t.finish != nullptr) (*t.finish)(t.i, t.j, t.c);
  });
  tiles_.clear();
  results_.clear();
}

template <Real T>
void gemm(T alpha, Mat<const T> a, Mat<const T> b, T beta, Mat<T> c) {
  Products<T> one;
  one.add(alpha, a, b, beta, c);
  one.run();
}

template <Real T>
void gemm(T alpha, Mat<const T> a, Mat<const T> b, T beta, Mat<T> c, const Finish<T>& finish) {
  Products<T> one;
  one.add(alpha, a, b, beta, c, &finish);
  one.run();
}

std::string blas_kernel() { return openblas_get_corename(); }

std::string better_blas_kernel() {
  const std::string config =
      openblas_get_config();  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
  if (config.find(" DYNAMIC_ARCH ") == std::string::npos) return "";  // has no others
  return better_kernel(blas_kernel(), Processor::here(), blas_version());
}

void choose_blas_kernel() {
  if (const char* chosen = std::getenv("OPENBLAS_CORETYPE"); chosen && *chosen != '\0') return;
  const std::string better = better_blas_kernel();
  if (better.empty() || gotoblas_dynamic_quit == nullptr || gotoblas_dynamic_init == nullptr)
    return;
  if (::setenv("OPENBLAS_CORETYPE", better.c_str(), 1) != 0) return;
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
}

std::string blas_description() {
  const char* const kinds[] = {"sequential", "pthread", "openmp"};
  return fmt::format("OpenBLAS {} ({}), kernel {}", blas_version(), kinds[openblas_get_parallel()],
                     openblas_get_corename());
}

template void gemm_tile(float, Mat<const float>, Mat<const float>, float, Mat<float>);
template void gemm_tile(double, Mat<const double>, Mat<const double>, double, Mat<double>);
template class Products<float>;
template class Products<double>;
template void gemm(float, Mat<const float>, Mat<const float>, float, Mat<float>);
template void gemm(double, Mat<const double>, Mat<const double>, double, Mat<double>);
template void gemm(float, Mat<const float>, Mat<const float>, float, Mat<float>,
                   const Finish<float>&);
template void gemm(double, Mat<const double>, Mat<const double>, double, Mat<double>,
                   const Finish<double>&);

}  // namespace headwise
