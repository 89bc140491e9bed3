#include "headwise/core/parallel.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "headwise/core/error.hpp"
#include "support/catch.hpp"
#include "support/threads.hpp"

using namespace headwise;
using test::Threads;

namespace {

using Blocks = std::vector<std::pair<Index, Index>>;

/// The blocks that [0, n) is cut into, in order.
Blocks blocks_of(Index n, Index grain) {
  Blocks blocks;
  for (Index i = 0; i < n; i += grain) blocks.emplace_back(i, std::min(n, i + grain));
  return blocks;
}

/// The blocks parallel_for calls a body with, in the order of where they begin.
Blocks blocks_seen(Index n, Index grain) {
  std::vector<std::atomic<int>> calls(static_cast<std::size_t>(n));
  std::vector<Index> ends(static_cast<std::size_t>(n));
  parallel_for(n, grain, [&](Index begin, Index end) {
    ++calls.at(static_cast<std::size_t>(begin));
    ends[static_cast<std::size_t>(begin)] = end;
  });
  Blocks seen;
  for (Index i = 0; i < n; ++i)
    for (int k = 0; k < calls[static_cast<std::size_t>(i)]; ++k)
      seen.emplace_back(i, ends[static_cast<std::size_t>(i)]);
  return seen;
}

/// Whether two blocks can run at the same time: each waits until the other is there too.
bool two_at_once() {
  std::atomic<int> here = 0;
  std::atomic<bool> met = true;
  parallel_for(2, 1, [&](Index, Index) {
    ++here;
    const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (here < 2 && met)
      if (std::chrono::steady_clock::now() > late) met = false;
  });
  return met;
}

}  // namespace

TEST_CASE("parallel_for covers every item once in blocks of its grain", "[core]") {
  for (const int team : {1, 2, 4}) {
    const Threads count(team);
    for (const Index n : {0, 1, 2, 3, 7, 64, 65, 1000})
      for (const Index grain : {1, 2, 3, 64, 1000, 5000}) {
        CAPTURE(team, n, grain);
        CHECK(blocks_seen(n, grain) == blocks_of(n, grain));
      }
  }
}

TEST_CASE("parallel_rows covers every row in blocks that follow from their length", "[core]") {
  const Threads count(2);
  for (const auto& [rows, n, block] : std::vector<std::array<Index, 3>>{
           {0, 5, 3276}, {10, 0, 16384}, {10, 100000, 1}, {5000, 4, 4096}, {1000, 100, 163}}) {
    CAPTURE(rows, n);
    std::vector<std::atomic<int>> calls(static_cast<std::size_t>(rows));
    parallel_rows(rows, n, [&](Index begin, Index end) {
      if (begin % block != 0 || end != std::min(rows, begin + block)) calls.front() += 100;
      for (Index i = begin; i < end; ++i) ++calls.at(static_cast<std::size_t>(i));
    });
    CHECK(std::all_of(calls.begin(), calls.end(), [](const auto& c) { return c == 1; }));
  }
}

TEST_CASE("two threads run two blocks at the same time", "[core]") {
  const Threads count(2);
  CHECK(two_at_once());
}

TEST_CASE("a nested parallel_for runs inline over the same blocks", "[core]") {
  for (const int team : {1, 2, 4}) {
    const Threads count(team);
    std::vector<Blocks> seen(8);
    std::atomic<int> elsewhere = 0;
    parallel_for(8, 1, [&](Index outer, Index) {
      const auto self = std::this_thread::get_id();
      parallel_for(10, 3, [&](Index begin, Index end) {
        if (std::this_thread::get_id() != self) ++elsewhere;
        seen[static_cast<std::size_t>(outer)].emplace_back(begin, end);  // in order, so no lock
      });
    });
    CAPTURE(team);
    CHECK(elsewhere == 0);
    for (const Blocks& blocks : seen) CHECK(blocks == blocks_of(10, 3));
  }
}

TEST_CASE("each block knows its worker, and two at a time are two workers", "[core]") {
  for (const int team : {1, 2, 4}) {
    const Threads count(team);
    CAPTURE(team);
    CHECK(workers() == team);
    CHECK(worker() == 0);
    std::atomic<int> wrong = 0;
    std::vector<std::atomic<int>> busy(4);
    parallel_for(200, 1, [&](Index, Index) {
      const int me = worker();
      if (me < 0 || me >= team || ++busy.at(static_cast<std::size_t>(me)) != 1) ++wrong;
      std::this_thread::yield();
      --busy.at(static_cast<std::size_t>(me));
    });
    CHECK(wrong == 0);
    CHECK(worker() == 0);
  }
}

TEST_CASE("a nested parallel_for has one worker, and the outer one's number comes back", "[core]") {
  const Threads count(4);
  std::atomic<int> wrong = 0;
  std::atomic<int> others = 0;
  parallel_for(4, 1, [&](Index i, Index) {
    const int me = worker();
    if (me != 0) ++others;
    if (workers() != 1) ++wrong;
    const auto nested = [&] {
      parallel_for(3, 1, [&](Index j, Index) {
        if (worker() != 0 || workers() != 1) ++wrong;
        require<DataError>(i < 2 || j < 2, "block {} {}", i, j);
      });
    };
    if (i < 2)
      nested();
    else
      try {
        nested();
        ++wrong;
      } catch (const DataError&) {
      }
    if (worker() != me) ++wrong;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // leave some to the others
  });
  CHECK(wrong == 0);
  CHECK(others > 0);
}

TEST_CASE("after an exception the caller is worker 0 of all again", "[core][errors]") {
  for (const int team : {1, 2, 4}) {
    const Threads count(team);
    CAPTURE(team);
    CHECK_THROWS_AS(parallel_for(4, 1, [](Index, Index) { throw std::runtime_error("no"); }),
                    std::runtime_error);
    CHECK(worker() == 0);
    CHECK(workers() == team);
  }
}

TEST_CASE("the exception of the first block that throws comes back", "[core][errors]") {
  for (const int team : {1, 2, 4}) {
    const Threads count(team);
    CAPTURE(team);
    for (int round = 0; round < 10; ++round)
      CHECK_THROWS_WITH(parallel_for(12, 1,
                                     [](Index i, Index) {
                                       if (i < 3) return;
                                       // Later blocks fail sooner.
                                       if (i == 3)
                                         std::this_thread::sleep_for(std::chrono::milliseconds(2));
                                       throw std::runtime_error("block " + std::to_string(i));
                                     }),
                        "block 3");
  }
  const Threads count(2);
  CHECK(two_at_once());  // as good as before
}

TEST_CASE("an exception inside a nested parallel_for reaches the caller", "[core][errors]") {
  const Threads count(2);
  CHECK_THROWS_AS(parallel_for(4, 1,
                               [](Index i, Index) {
                                 parallel_for(4, 1, [i](Index j, Index) {
                                   require<DataError>(i + j < 5, "block {} {}", i, j);
                                 });
                               }),
                  DataError);
  CHECK(two_at_once());
}

TEST_CASE("parallel_for works from threads of the host", "[core]") {
  const Threads count(2);
  std::vector<Blocks> seen(3);
  std::vector<char> met(3);
  std::vector<std::thread> hosts;
  for (std::size_t t = 0; t < 3; ++t)
    hosts.emplace_back([&, t] {
      met[t] = two_at_once();
      seen[t] = blocks_seen(1000, 7);
    });
  for (std::thread& host : hosts) host.join();
  for (std::size_t t = 0; t < 3; ++t) {
    CHECK(met[t]);
    CHECK(seen[t] == blocks_of(1000, 7));
  }
}

TEST_CASE("partial sums in block order are the same bits for any number of threads", "[core]") {
  const auto sum = [](int team) {
    const Threads count(team);
    std::vector<float> partial(100);
    parallel_for(10000, 100, [&](Index begin, Index end) {
      float s = 0;
      for (Index i = begin; i < end; ++i) s += 1 / static_cast<float>(i + 1);
      partial[static_cast<std::size_t>(begin / 100)] = s;
    });
    float total = 0;
    for (const float s : partial) total += s;
    return total;
  };
  CHECK(sum(2) == sum(1));
  CHECK(sum(4) == sum(1));
}

TEST_CASE("the number of threads is from 1 to 1024", "[core][errors]") {
  const Threads count(3);
  CHECK(threads() == 3);
  CHECK_THROWS_WITH(set_threads(0), "threads: must be in [1, 1024], got 0");
  CHECK_THROWS_WITH(set_threads(-2), "threads: must be in [1, 1024], got -2");
  CHECK_THROWS_AS(set_threads(1025), UsageError);
  CHECK(threads() == 3);
  set_threads(1024);
  CHECK(threads() == 1024);
}
