// Control groups as folders of the test's own.
#include "runtime/machine/ControlGroup.h"
#include "runtime/machine/Cpus.h"
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace meshwork::runtime {
namespace {

constexpr const char *mount2 =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
constexpr const char *mount1 =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

class ControlGroup : public testing::Test {
protected:
  ControlGroup() {
    std::string name = testing::TempDir() + "meshwork-cgroup-XXXXXX";
    root = mkdtemp(name.data());
  }
  ~ControlGroup() override { std::filesystem::remove_all(root); }

  void write(const std::string &path, const std::string &text) {
    std::filesystem::create_directories(
        std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  void belong(const std::string &groups, const std::string &mounts) {
    write("/proc/self/cgroup", groups);
    write("/proc/self/mountinfo", mounts);
  }
  void group2(const std::string &name, const std::string &limit,
              const std::string &used, const std::string &stat = "") {
    std::string folder = "/sys/fs/cgroup" + name;
    write(folder + "/memory.max", limit + "\n");
    write(folder + "/memory.current", used + "\n");
    write(folder + "/memory.stat", stat);
  }
  void group1(const std::string &name, const std::string &limit,
              const std::string &used, const std::string &stat = "") {
    std::string folder = "/sys/fs/cgroup/memory" + name;
    write(folder + "/memory.limit_in_bytes", limit + "\n");
    write(folder + "/memory.usage_in_bytes", used + "\n");
    write(folder + "/memory.stat", stat);
  }
  uint64_t bytes() const { return controlGroupBytes(root); }

  std::string root;
};

TEST_F(ControlGroup, NoneOrWithoutALimit) {
  EXPECT_EQ(bytes(), UINT64_MAX);
  belong("0::/job\n", mount2);
  EXPECT_EQ(bytes(), UINT64_MAX);
  group2("/job", "max", "5000");
  EXPECT_EQ(bytes(), UINT64_MAX);
}

TEST_F(ControlGroup, PageCacheIsFree) {
  belong("0::/job\n", mount2);
  group2("/job", "1000", "950",
         "anon 40\nfile 960\ninactive_anon 15\ninactive_file 500\n"
         "active_file 400\nworkingset_refault_file 7\n");
  EXPECT_EQ(bytes(), 950u);
  group2("/job", "1000", "950", "anon 950\ninactive_file 0\n");
  EXPECT_EQ(bytes(), 50u);
}

TEST_F(ControlGroup, NothingIsLeftAboveTheLimit) {
  belong("0::/job\n", mount2);
  group2("/job", "1000", "1200");
  EXPECT_EQ(bytes(), 0u);
  group2("/job", "1000", "1200", "active_file 5000\n"); // read a moment later
  EXPECT_EQ(bytes(), 1000u);
}

TEST_F(ControlGroup, TheTightestOfThoseAroundCounts) {
  belong("0::/a/b/c\n", mount2);
  group2("/a/b/c", "max", "10");
  group2("/a/b", "5000", "1000");
  group2("/a", "9000", "8000", "inactive_file 100\n");
  group2("/other", "10", "10");
  EXPECT_EQ(bytes(), 1100u);
  group2("", "700", "0"); // a container's own group is the mount's folder
  EXPECT_EQ(bytes(), 700u);
}

TEST_F(ControlGroup, AMountMayShowAPartOfTheTree) {
  std::string mounts = mount2;
  mounts.replace(mounts.find(" / "), 3, " /pod/box ");
  belong("0::/pod/box/job\n", mounts);
  group2("", "2000", "0");
  group2("/job", "1000", "0");
  EXPECT_EQ(bytes(), 1000u);
  for (const char *outside : {"0::/elsewhere\n", "0::/pod/boxer/job\n"}) {
    belong(outside, mounts);
    EXPECT_EQ(bytes(), 2000u);
  }
}

TEST_F(ControlGroup, VersionOne) {
  belong("5:cpuset,memory:/box/job\n4:cpu:/x\n0::/\n", mount1);
  const char *unlimited = "9223372036854771712";
  group1("", unlimited, "99999");
  group1("/box", "4000", "3000",
         "inactive_file 9\ntotal_inactive_file 500\ntotal_active_file 250\n");
  group1("/box/job", unlimited, "2000", "total_inactive_file 400\n");
  EXPECT_EQ(bytes(), 1750u);
  group1("/box/job", "2500", "2000", "total_inactive_file 400\n");
  EXPECT_EQ(bytes(), 900u);
}

TEST_F(ControlGroup, BothVersions) {
  std::string mounts = mount2;
  mounts.replace(mounts.find("/sys/fs/cgroup"), 14, "/sys/fs/cgroup/unified");
  belong("4:memory:/job\n0::/job\n", mounts + mount1);
  group1("/job", "3000", "0");
  EXPECT_EQ(bytes(), 3000u);
}

TEST_F(ControlGroup, NoQuotaOfTime) {
  EXPECT_EQ(controlGroupCores(root), std::nullopt);
  belong("0::/job\n5:cpu,cpuacct:/job\n", std::string(mount2) + mount1);
  EXPECT_EQ(controlGroupCores(root), std::nullopt);
  write("/sys/fs/cgroup/job/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(controlGroupCores(root), std::nullopt);
  for (const char *damaged : {"", "max", "200000", "1 0", "-5 100", "x 100"}) {
    write("/sys/fs/cgroup/job/cpu.max", damaged);
    EXPECT_EQ(controlGroupCores(root), std::nullopt) << damaged;
  }
}

TEST_F(ControlGroup, TheTightestQuotaAroundCounts) {
  belong("0::/a/b/c\n", mount2);
  write("/sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
  write("/sys/fs/cgroup/a/cpu.max", "400000 100000\n");
  write("/sys/fs/cgroup/other/cpu.max", "1000 100000\n");
  EXPECT_EQ(controlGroupCores(root), 1.5);
  write("/sys/fs/cgroup/cpu.max", "50000 100000\n"); // a container's own
  EXPECT_EQ(controlGroupCores(root), 0.5);
}

/// Of a share of time a thread gets a whole core or none.
TEST_F(ControlGroup, CoresAreWhole) {
  size_t all = allowedCpus().size();
  belong("0::/job\n", mount2);
  for (auto [quota, cores] :
       {std::pair("max", all), std::pair("10000", size_t{1}),
        std::pair("190000", size_t{1}), std::pair("200000", size_t{2}),
        std::pair("9000000000000000000", all)}) {
    write("/sys/fs/cgroup/job/cpu.max", std::string(quota) + " 100000\n");
    EXPECT_EQ(usableCores(root), std::min(all, cores)) << quota;
  }
}

TEST_F(ControlGroup, QuotasOfVersionOne) {
  belong("5:cpu,cpuacct:/box/job\n4:memory:/x\n0::/\n", mount1);
  write("/sys/fs/cgroup/cpu/box/job/cpu.cfs_quota_us", "300000\n");
  write("/sys/fs/cgroup/cpu/box/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(controlGroupCores(root), 3);
  write("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "100000\n");
  write("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(controlGroupCores(root), 2);
}

TEST_F(ControlGroup, DamagedFiles) {
  for (const char *groups : {"", "\n", "0:", "0::", "0::\n", "::::", "0::xyz"})
    for (const char *mounts :
         {"", "- cgroup2 x y", "1 2 3 / /m - cgroup2", mount2}) {
      belong(groups, mounts);
      EXPECT_EQ(bytes(), UINT64_MAX);
    }
}

} // namespace
} // namespace meshwork::runtime
