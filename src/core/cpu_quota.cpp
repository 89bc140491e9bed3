#include "core/cpu_quota.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string_view>

namespace headwise {
namespace {

/// quota / period, as "max 100000" or "50000 100000" says it; -1 or "max" is no limit.
std::optional<double> limit_in(const std::string& quota, double period) {
  if (quota.empty() || quota == "max" || !(period > 0)) return std::nullopt;
  const double microseconds = std::strtod(quota.c_str(), nullptr);
  if (!(microseconds > 0)) return std::nullopt;
  return microseconds / period;
}

/// The limit of one group: version 2 has it in one file, version 1 in two.
std::optional<double> limit_of(const std::string& folder) {
  std::string quota;
  double period = 0;
  if (std::ifstream(folder + "/cpu.max") >> quota >> period) return limit_in(quota, period);
  if (std::ifstream(folder + "/cpu.cfs_quota_us") >> quota &&
      std::ifstream(folder + "/cpu.cfs_period_us") >> period)
    return limit_in(quota, period);
  return std::nullopt;
}

bool names_cpu(const std::string& controllers) {
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');)
    if (name == "cpu") return true;
  return false;
}

}  // namespace

std::optional<double> cpu_quota(const std::string& root) {
  std::optional<double> least;
  std::ifstream groups(root + "/proc/self/cgroup");  // "0::/path" or "4:cpu,cpuacct:/path"
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && !names_cpu(controllers)) continue;
    // In a container the path may be one outside of it: then only the root is there to be read.
    for (const std::string& mounted : {unified ? std::string() : "/" + controllers,
                                       unified ? std::string("/unified") : std::string("/cpu")})
      for (std::string path = line.substr(second + 1);; path.erase(path.find_last_of('/'))) {
        if (path == "/") path.clear();
        if (const auto limit = limit_of(root + "/sys/fs/cgroup" + mounted + path))
          least = std::min(*limit, least.value_or(*limit));
        if (path.find_last_of('/') == std::string::npos) break;
      }
  }
  return least;
}

int threads_for(int cores, std::optional<double> quota) {
  // A quota of 0.9999 of a CPU is one of 1.
  const double most = quota ? std::ceil(*quota - 1e-3) : cores;
  return static_cast<int>(std::clamp<double>(most, 1, std::max(1, cores)));
}

std::string threads_reason(int cores, std::optional<double> quota) {
  const auto plural = [](double n) { return n == 1 ? "" : "s"; };
  if (threads_for(cores, quota) == cores) return fmt::format("{} core{}", cores, plural(cores));
  return fmt::format("quota of {:.3g} CPU{}; {} core{} in the affinity mask", *quota,
                     plural(*quota), cores, plural(cores));
}

}  // namespace headwise
