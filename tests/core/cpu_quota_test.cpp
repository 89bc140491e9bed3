#include "core/cpu_quota.hpp"

#include <filesystem>
#include <fstream>
#include <map>

#include "support/catch.hpp"

using namespace headwise;

namespace {

/// The quota on a system with these files.
std::optional<double> quota_with(const std::map<std::string, std::string>& files) {
  std::string root = (std::filesystem::temp_directory_path() / "headwise-XXXXXX").string();
  REQUIRE(::mkdtemp(root.data()) != nullptr);
  for (const auto& [path, text] : files) {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  const auto quota = cpu_quota(root);
  std::filesystem::remove_all(root);
  return quota;
}

const std::string kGroup = "/proc/self/cgroup", kFs = "/sys/fs/cgroup";

}  // namespace

TEST_CASE("a control group's CPU quota is the least around the process", "[core][threads]") {
  CHECK_FALSE(quota_with({}));
  // Version 2.
  CHECK_FALSE(quota_with({{kGroup, "0::/a\n"}, {kFs + "/a/cpu.max", "max 100000\n"}}));
  CHECK(quota_with({{kGroup, "0::/a\n"}, {kFs + "/a/cpu.max", "150000 100000\n"}}) == 1.5);
  CHECK(quota_with({{kGroup, "0::/a/b\n"},
                    {kFs + "/a/cpu.max", "100000 100000\n"},
                    {kFs + "/a/b/cpu.max", "300000 100000\n"}}) == 1);
  CHECK(quota_with({{kGroup, "0::/\n"}, {kFs + "/cpu.max", "200000 100000\n"}}) == 2);
  // A path outside of the container: its root is mounted.
  CHECK(quota_with({{kGroup, "0::/../x\n"}, {kFs + "/cpu.max", "50000 100000\n"}}) == 0.5);
  // Version 1.
  CHECK(quota_with({{kGroup, "7:memory:/m\n4:cpu,cpuacct:/d/e\n0::/\n"},
                    {kFs + "/cpu,cpuacct/d/e/cpu.cfs_quota_us", "100000\n"},
                    {kFs + "/cpu,cpuacct/d/e/cpu.cfs_period_us", "50000\n"}}) == 2);
  CHECK(quota_with({{kGroup, "1:cpu:/docker/0123\n"},
                    {kFs + "/cpu/cpu.cfs_quota_us", "90000\n"},
                    {kFs + "/cpu/cpu.cfs_period_us", "100000\n"}}) == 0.9);
  CHECK_FALSE(quota_with({{kGroup, "1:cpu:/\n"},
                          {kFs + "/cpu/cpu.cfs_quota_us", "-1\n"},
                          {kFs + "/cpu/cpu.cfs_period_us", "100000\n"}}));
  CHECK_FALSE(quota_with({{kGroup, "1:cpuset:/\n"},
                          {kFs + "/cpuset/cpu.cfs_quota_us", "1\n"},
                          {kFs + "/cpuset/cpu.cfs_period_us", "100000\n"}}));
  // What is no quota limits nothing.
  CHECK_FALSE(quota_with({{kGroup, "0::/\nnonsense\n"}, {kFs + "/cpu.max", "much\n"}}));
  CHECK_FALSE(quota_with({{kGroup, "0::/\n"}, {kFs + "/cpu.max", "0 0\n"}}));
}

TEST_CASE("threads are the cores, or what a quota lets them do", "[core][threads]") {
  CHECK(threads_for(2, std::nullopt) == 2);
  CHECK(threads_for(2, 1.0) == 1);
  CHECK(threads_for(4, 1.5) == 2);
  CHECK(threads_for(4, 0.1) == 1);
  CHECK(threads_for(2, 8.0) == 2);
  CHECK(threads_reason(2, std::nullopt) == "2 cores");
  CHECK(threads_reason(1, 3.0) == "1 core");
  CHECK(threads_reason(2, 1.0) == "quota of 1 CPU; 2 cores in the affinity mask");
  CHECK(threads_reason(4, 1.5) == "quota of 1.5 CPUs; 4 cores in the affinity mask");
}
