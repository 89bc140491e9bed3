// A layer between a program and its files, for tests: loaded by LD_PRELOAD, it counts the calls
// that concern files of one folder and spoils one of them. What it does stands in the environment:
//   FAULT_FOLDER  absolute path; calls on it and on what is below it are counted, others pass
//   FAULT_AT      number of the call, from 1; "7+": that call and every later one that takes space
//   FAULT         what happens there:
//                   the name of an error (ENOSPC, EIO, ...): the call fails with it
//                   short: a read or write does half of what was asked
//                   kill: SIGKILL before the call; kill-half: after half of a write
//                   SIGTERM and other signals: raised before the call, which is then made
//   FAULT_CALLS   file; a line for each counted call is added to it, "NAME PATH"
// The calls are those of this library's code and of what it links. The C library's own are not
// seen, apart from fopen. The real calls are made through syscall(2), so nothing is looked up.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Name {
  const char* text;
  int value;
};

constexpr Name kErrors[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO},       {"EINTR", EINTR},
                            {"EDQUOT", EDQUOT}, {"EMFILE", EMFILE}, {"EACCES", EACCES},
                            {"EROFS", EROFS},   {"ENOLCK", ENOLCK}, {"ENOMEM", ENOMEM},
                            {"ESTALE", ESTALE}, {"EFBIG", EFBIG}};
constexpr Name kSignals[] = {{"SIGTERM", SIGTERM}, {"SIGHUP", SIGHUP},   {"SIGINT", SIGINT},
                             {"SIGSTOP", SIGSTOP}, {"SIGXFSZ", SIGXFSZ}, {"SIGQUIT", SIGQUIT}};

enum class Fault { none, error, half, kill, kill_half, signal };

struct Plan {
  char folder[PATH_MAX] = "";
  std::size_t folder_size = 0;
  long at = 0;
  bool stays = false;  // from that call on, for all that take space
  Fault fault = Fault::none;
  int value = 0;  // of errno, or the signal
  int calls = -1;

  Plan() {
    const char* const below = std::getenv("FAULT_FOLDER");
    if (below == nullptr || std::strlen(below) >= sizeof folder) return;
    std::strcpy(folder, below);
    folder_size = std::strlen(folder);
    if (const char* const file = std::getenv("FAULT_CALLS"))
      calls = static_cast<int>(
          ::syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    const char* const when = std::getenv("FAULT_AT");
    const char* const what = std::getenv("FAULT");
    if (when == nullptr || what == nullptr) return;
    char* end = nullptr;
    at = std::strtol(when, &end, 10);
    stays = *end == '+';
    if (std::strcmp(what, "short") == 0) fault = Fault::half;
    if (std::strcmp(what, "kill") == 0) fault = Fault::kill;
    if (std::strcmp(what, "kill-half") == 0) fault = Fault::kill_half;
    for (const Name& n : kErrors)
      if (std::strcmp(what, n.text) == 0) fault = Fault::error, value = n.value;
    for (const Name& n : kSignals)
      if (std::strcmp(what, n.text) == 0) fault = Fault::signal, value = n.value;
    if (fault == Fault::none) {
      std::fprintf(stderr, "fault_layer: unknown FAULT '%s'\n", what);
      std::abort();
    }
  }

  [[nodiscard]] bool has(const char* path) const {
    return folder_size > 0 && std::strncmp(path, folder, folder_size) == 0 &&
           (path[folder_size] == '/' || path[folder_size] == '\0');
  }
};

const Plan& plan() {
  static const Plan the_plan;
  return the_plan;
}

/// Where an open file is, "" if that is nowhere.
void path_of(int fd, char (&path)[PATH_MAX]) {
  char link[64];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long n = ::syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  path[n > 0 ? n : 0] = '\0';
}

/// An absolute path; a relative one counts from the folder that is open as `fd`.
void path_of(int fd, const char* name, char (&path)[PATH_MAX]) {
  path[0] = '\0';
  if (name[0] != '/') {
    if (fd != AT_FDCWD)
      path_of(fd, path);
    else if (::syscall(SYS_getcwd, path, sizeof path) < 0)
      path[0] = '\0';
    std::strncat(path, "/", sizeof path - std::strlen(path) - 1);
  }
  std::strncat(path, name, sizeof path - std::strlen(path) - 1);
}

/// What happens to this call, which concerns `path`.
Fault next(const char* call, const char* path, bool takes_space) {
  const Plan& p = plan();
  if (!p.has(path)) return Fault::none;
  static std::atomic<long> count = 0;
  const long number = ++count;
  if (p.calls >= 0) {
    char line[PATH_MAX + 32];
    const int n = std::snprintf(line, sizeof line, "%s %s\n", call, path);
    ::syscall(SYS_write, p.calls, line, static_cast<std::size_t>(n));
  }
  const bool here = number == p.at || (p.stays && number > p.at && takes_space);
  if (!here) return Fault::none;
  if (p.fault == Fault::kill) ::syscall(SYS_kill, ::syscall(SYS_getpid), SIGKILL);
  if (p.fault == Fault::signal) {
    std::raise(p.value);
    return Fault::none;
  }
  if (p.fault == Fault::error) errno = p.value;
  return p.fault;
}

Fault next_of_file(const char* call, int fd, bool takes_space) {
  if (plan().folder_size == 0 || fd < 0) return Fault::none;
  char path[PATH_MAX];
  path_of(fd, path);
  return next(call, path, takes_space);
}

Fault next_of_name(const char* call, int fd, const char* name, bool takes_space) {
  if (plan().folder_size == 0) return Fault::none;
  char path[PATH_MAX];
  path_of(fd, name, path);
  return next(call, path, takes_space);
}

/// A call that either fails or is made.
template <class F>
auto made(Fault fault, F real) {
  return fault == Fault::error ? decltype(real())(-1) : real();
}

int open_file(int folder, const char* name, int flags, mode_t mode) {
  const bool creates = (flags & O_CREAT) != 0;
  return made(next_of_name(creates ? "create" : "open", folder, name, creates),
              [&] { return static_cast<int>(::syscall(SYS_openat, folder, name, flags, mode)); });
}

/// A read or write of n bytes; move(m) does m of them.
template <class F>
ssize_t moved(const char* call, int fd, std::size_t n, bool writes, F move) {
  const Fault fault = next_of_file(call, fd, writes);
  if (fault == Fault::error) return -1;
  if (fault == Fault::half) return move(n > 1 ? n / 2 : n);
  if (fault == Fault::kill_half) {
    if (writes) move(n / 2);
    ::syscall(SYS_kill, ::syscall(SYS_getpid), SIGKILL);
  }
  return move(n);
}

mode_t mode_of(int flags, std::va_list rest) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
}

}  // namespace

#define OPEN(name)                                    \
  EXPORT int name(const char* path, int flags, ...) { \
    std::va_list rest;                                \
    va_start(rest, flags);                            \
    const mode_t mode = mode_of(flags, rest);         \
    va_end(rest);                                     \
    return open_file(AT_FDCWD, path, flags, mode);    \
  }
#define OPEN_AT(name)                                             \
  EXPORT int name(int folder, const char* path, int flags, ...) { \
    std::va_list rest;                                            \
    va_start(rest, flags);                                        \
    const mode_t mode = mode_of(flags, rest);                     \
    va_end(rest);                                                 \
    return open_file(folder, path, flags, mode);                  \
  }
OPEN(open)
OPEN(open64)
OPEN_AT(openat)
OPEN_AT(openat64)

#define FOPEN(name)                                                                        \
  EXPORT FILE* name(const char* path, const char* mode) {                                  \
    using Real = FILE*(const char*, const char*);                                          \
    static Real* const real = reinterpret_cast<Real*>(::dlsym(RTLD_NEXT, #name));          \
    const bool fails = next_of_name("open", AT_FDCWD, path,                                \
                                    std::strpbrk(mode, "wa+") != nullptr) == Fault::error; \
    return fails ? nullptr : real(path, mode);                                             \
  }
FOPEN(fopen)
FOPEN(fopen64)

EXPORT ssize_t write(int fd, const void* bytes, size_t n) {
  return moved("write", fd, n, true,
               [&](size_t m) { return ssize_t{::syscall(SYS_write, fd, bytes, m)}; });
}

EXPORT ssize_t writev(int fd, const iovec* parts, int count) {
  return made(next_of_file("write", fd, true),
              [&] { return ssize_t{::syscall(SYS_writev, fd, parts, count)}; });
}

EXPORT ssize_t read(int fd, void* bytes, size_t n) {
  return moved("read", fd, n, false,
               [&](size_t m) { return ssize_t{::syscall(SYS_read, fd, bytes, m)}; });
}

#define AT_OFFSET(name, kind, Bytes, writes)                                            \
  EXPORT ssize_t name(int fd, Bytes* bytes, size_t n, off_t at) {                       \
    return moved(kind, fd, n, writes, [&](size_t m) {                                   \
      return ssize_t{::syscall(writes ? SYS_pwrite64 : SYS_pread64, fd, bytes, m, at)}; \
    });                                                                                 \
  }
AT_OFFSET(pwrite, "write", const void, true)
AT_OFFSET(pwrite64, "write", const void, true)
AT_OFFSET(pread, "read", void, false)
AT_OFFSET(pread64, "read", void, false)

EXPORT int fsync(int fd) {
  return made(next_of_file("fsync", fd, true),
              [&] { return static_cast<int>(::syscall(SYS_fsync, fd)); });
}

EXPORT int fdatasync(int fd) {
  return made(next_of_file("fsync", fd, true),
              [&] { return static_cast<int>(::syscall(SYS_fdatasync, fd)); });
}

EXPORT int close(int fd) {  // one that fails has closed the file
  const Fault fault = next_of_file("close", fd, false);
  const int reason = errno;
  const int result = static_cast<int>(::syscall(SYS_close, fd));
  if (fault != Fault::error) return result;
  errno = reason;
  return -1;
}

#define TRUNCATE(name)                                                                 \
  EXPORT int name(int fd, off_t size) noexcept {                                       \
    return made(next_of_file("ftruncate", fd, true),                                   \
                [&] { return static_cast<int>(::syscall(SYS_ftruncate, fd, size)); }); \
  }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

EXPORT int renameat(int from_folder, const char* from, int folder, const char* to) noexcept {
  return made(next_of_name("rename", folder, to, false), [&] {
    return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, folder, to, 0));
  });
}

EXPORT int renameat2(int from_folder, const char* from, int folder, const char* to,
                     unsigned flags) noexcept {
  return made(next_of_name("rename", folder, to, false), [&] {
    return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, folder, to, flags));
  });
}

EXPORT int rename(const char* from, const char* to) noexcept {
  return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

EXPORT int linkat(int from_folder, const char* from, int folder, const char* to,
                  int flags) noexcept {
  return made(next_of_name("link", folder, to, true), [&] {
    return static_cast<int>(::syscall(SYS_linkat, from_folder, from, folder, to, flags));
  });
}

EXPORT int unlinkat(int folder, const char* path, int flags) noexcept {
  return made(next_of_name("unlink", folder, path, false),
              [&] { return static_cast<int>(::syscall(SYS_unlinkat, folder, path, flags)); });
}

EXPORT int unlink(const char* path) noexcept { return unlinkat(AT_FDCWD, path, 0); }

EXPORT int mkdirat(int folder, const char* path, mode_t mode) noexcept {
  return made(next_of_name("mkdir", folder, path, true),
              [&] { return static_cast<int>(::syscall(SYS_mkdirat, folder, path, mode)); });
}

EXPORT int mkdir(const char* path, mode_t mode) noexcept { return mkdirat(AT_FDCWD, path, mode); }

EXPORT int fchmod(int fd, mode_t mode) noexcept {
  return made(next_of_file("chmod", fd, false),
              [&] { return static_cast<int>(::syscall(SYS_fchmod, fd, mode)); });
}

EXPORT int flock(int fd, int operation) noexcept {
  return made(next_of_file("lock", fd, false),
              [&] { return static_cast<int>(::syscall(SYS_flock, fd, operation)); });
}

#define FCNTL(name)                                                                             \
  EXPORT int name(int fd, int command, ...) {                                                   \
    std::va_list rest;                                                                          \
    va_start(rest, command);                                                                    \
    void* const argument = va_arg(rest, void*);                                                 \
    va_end(rest);                                                                               \
    const bool locks = command == F_SETLK || command == F_OFD_SETLK || command == F_SETLKW;     \
    return made(locks ? next_of_file("lock", fd, false) : Fault::none,                          \
                [&] { return static_cast<int>(::syscall(SYS_fcntl, fd, command, argument)); }); \
  }
FCNTL(fcntl)
FCNTL(fcntl64)

EXPORT int fstatat(int folder, const char* path, struct stat* result, int flags) noexcept {
  return made(next_of_name("stat", folder, path, false), [&] {
    return static_cast<int>(::syscall(SYS_newfstatat, folder, path, result, flags));
  });
}

EXPORT int stat(const char* path, struct stat* result) noexcept {
  return fstatat(AT_FDCWD, path, result, 0);
}

EXPORT int lstat(const char* path, struct stat* result) noexcept {
  return fstatat(AT_FDCWD, path, result, AT_SYMLINK_NOFOLLOW);
}

EXPORT int fstat(int fd, struct stat* result) noexcept {
  return made(next_of_file("stat", fd, false), [&] {
    return static_cast<int>(::syscall(SYS_newfstatat, fd, "", result, AT_EMPTY_PATH));
  });
}

EXPORT void* mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  if (fd >= 0 && next_of_file("mmap", fd, false) == Fault::error) return MAP_FAILED;
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, size, protection, flags, fd, offset));
}

EXPORT void* mmap64(void* at, size_t size, int protection, int flags, int fd,
                    off_t offset) noexcept {
  return mmap(at, size, protection, flags, fd, offset);
}
