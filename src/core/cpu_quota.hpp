// How much processor time a control group (cgroup) leaves this process.
#pragma once

#include <optional>
#include <string>

namespace headwise {

/// CPUs' worth of time: the least of quota / period of the process's control group and of those
/// around it, version 1 or 2; nothing without a limit. `root` stands before every path read, ""
/// being this system.
std::optional<double> cpu_quota(const std::string& root = "");

/// Threads that suit so many cores and such a quota: a part of a CPU counts whole, and there is one
/// at least.
int threads_for(int cores, std::optional<double> quota);

/// "2 cores", or "quota of 1.5 CPUs; 4 cores in the affinity mask".
std::string threads_reason(int cores, std::optional<double> quota);

}  // namespace headwise
