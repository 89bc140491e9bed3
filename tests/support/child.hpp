// Asks in a process of its own what might crash: a crash is then an answer, not the end of the
// tests.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "headwise/core/parallel.hpp"

namespace headwise::test {

/// Whether f throws an E, rather than return, throw something else or crash.
template <class E, class F>
bool throws_in_child(F f) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);  // the test framework's handler would speak of a failed test
    set_threads(1);                 // the parent's worker threads do not exist here
    try {
      f();
    } catch (const E&) {
      _exit(0);
    } catch (...) {
    }
    _exit(1);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

}  // namespace headwise::test
