#include "headwise/core/init.hpp"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "core/blas_kernel.hpp"

extern char** environ;

namespace headwise {
namespace {

constexpr char kSelf[] = "/proc/self/exe";

/// Opens those of the descriptors 0 to 2 that are closed. Reading from 0 and writing to 1 still
/// fail, as on a closed one; what goes to 2 is dropped.
void open_standard_streams() {
  constexpr int kModes[] = {O_WRONLY, O_RDONLY, O_WRONLY};
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) [[maybe_unused]]
      const int lowest = ::open("/dev/null", kModes[fd]);
}

bool has(char* const* env, const char* name) {
  const std::size_t n = std::strlen(name);
  for (; *env != nullptr; ++env)
    if (std::strncmp(*env, name, n) == 0 && (*env)[n] == '=') return true;
  return false;
}

const char* program_path() { return reinterpret_cast<const char*>(::getauxval(AT_EXECFN)); }

/// The program was started by restart(): the path it was started with says so, which unlike the
/// environment cannot get lost.
bool restarted() { return program_path() != nullptr && std::strcmp(program_path(), kSelf) == 0; }

/// Starts this program again with the settings that `env` lacks. Returns when it lacks none, when
/// this was done already, or when it does not work: then all goes on as it is.
void restart(char* const* argv, char* const* env) {
  // Without an interpreter the program was started through the dynamic linker, as its argument, and
  // kSelf is the linker.
  if (argv[0] == nullptr || restarted() || ::getauxval(AT_BASE) == 0) return;
  static char spin[] = "GOMP_SPINCOUNT=2000", blas[] = "OPENBLAS_NUM_THREADS=1";
  std::size_t n = 0;
  while (env[n] != nullptr) ++n;
  // No allocation: this may run before the C library is ready for it.
  auto** const all = static_cast<char**>(__builtin_alloca((n + 3) * sizeof(char*)));
  std::copy_n(env, n, all);
  const std::size_t before = n;
  if (!has(env, "GOMP_SPINCOUNT") && !has(env, "OMP_WAIT_POLICY")) all[n++] = spin;
  if (!has(env, "OPENBLAS_NUM_THREADS")) all[n++] = blas;
  all[n] = nullptr;
  if (n > before) ::execve(kSelf, argv, all);
}

/// The kernel named the process after kSelf; names it after its file again.
void restore_name() {
  char path[PATH_MAX];
  const ssize_t n = ::readlink(kSelf, path, sizeof path - 1);
  if (n <= 0) return;
  path[n] = '\0';
  const char* const slash = std::strrchr(path, '/');
  ::prctl(PR_SET_NAME, slash == nullptr ? path : slash + 1);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__GLIBC__) && !defined(headwise_EXPORTS) && !defined(__SANITIZE_ADDRESS__)
/// Before the libraries are initialised: where no thread can be made, OpenBLAS ends the process in
/// its own initialisation, unless it is told to make none. Linked into whatever program calls
/// init(); a shared library cannot have such a function, there init() alone does it.
void before_libraries(int, char** argv, char** env) {
  open_standard_streams();
  restart(argv, env);
}
[[gnu::used,
  gnu::section(".preinit_array")]] void (*run_before_libraries)(int, char**,
                                                                char**) = before_libraries;
#endif

}  // namespace

void init(int argc, char** argv) {
  open_standard_streams();
  if (argc > 0) restart(argv, environ);
  if (restarted()) restore_name();
  choose_blas_kernel();
}

}  // namespace headwise
