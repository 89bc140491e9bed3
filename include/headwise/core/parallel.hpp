// Threads, behind one function. Results do not depend on how many there are.
#pragma once

#include <string>

#include "headwise/core/function_ref.hpp"
#include "headwise/core/shape.hpp"

namespace headwise {

/// Threads used by parallel_for, default_threads() at start. Fewer from the first parallel_for on
/// where the system refuses to make so many; 1 in a process that was forked from one that used
/// several, whose threads do not exist there.
int threads();
/// Throws UsageError unless 1 <= n <= 1024.
void set_threads(int n);

/// The cores this process may run on (its affinity mask), or fewer under a control group's quota:
/// quota / period, rounded up.
int default_threads();
/// Why so many, e.g. "2 cores" or "quota of 1 CPU; 2 cores in the affinity mask".
std::string default_threads_reason();
/// Makes sure that the system lets this process have threads() threads, and returns how many: fewer
/// where it does not, and threads() is that from then on. The first parallel_for does so, too.
int make_threads();

/// Calls body(begin, end) on blocks of `grain` items that cover [0, n), on up to threads()
/// threads. The blocks follow from n and grain alone: per-block results combined in block order
/// are the same bits for any number of threads. Inside a parallel_for that runs on several threads
/// it runs inline, over the same blocks. When blocks throw, the exception of the first of them is
/// rethrown here.
void parallel_for(Index n, Index grain, FunctionRef<void(Index begin, Index end)> body);

/// How many threads may work for a parallel_for called here (one inside another), and, in its body,
/// which of them this is, from 0 on: for scratch memory that is taken before and is one a thread.
int workers();
int worker();

/// parallel_for over rows of n elements each, in blocks of about 16 Ki elements.
void parallel_rows(Index rows, Index n, FunctionRef<void(Index begin, Index end)> body);

}  // namespace headwise
