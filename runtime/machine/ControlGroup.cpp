// Formats: cgroups(7), proc(5), and in the kernel's documentation
// admin-guide/cgroup-v2.rst, admin-guide/cgroup-v1/memory.rst and
// scheduler/sched-bwc.rst.
#include "runtime/machine/ControlGroup.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include <algorithm>
#include <fstream>
#include <optional>
#include <vector>

namespace meshwork::runtime {
namespace {

/// A tree of groups.
struct Tree {
  const char *filesystem, *controller; // the controller in /proc/self/cgroup
};

/// How a version calls things.
struct Version {
  Tree tree;
  const char *limit, *used, *cachePrefix;
};
constexpr Version versions[] = {
    {{"cgroup2", ""}, "memory.max", "memory.current", ""},
    {{"cgroup", "memory"},
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     "total_"}};

/// Where the tree of groups of a version can be read. The folder at `point` is
/// that of the group `group`.
struct Mount {
  std::string point, group;
};

using Fields = std::vector<std::string>;

bool contains(const Fields &fields, const std::string &field) {
  return std::find(fields.begin(), fields.end(), field) != fields.end();
}

/// Lines are: id parent device GROUP POINT options... - TYPE source OPTIONS.
std::optional<Mount> findMount(const std::string &root, const Tree &tree) {
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    Fields fields = absl::StrSplit(line, ' ');
    auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 5 || fields.end() - dash < 4 ||
        dash[1] != tree.filesystem)
      continue;
    Fields options = absl::StrSplit(dash[3], ',');
    if (!*tree.controller || contains(options, tree.controller))
      return Mount{fields[4], fields[3]};
  }
  return std::nullopt;
}

/// Lines are: number:CONTROLLERS:GROUP, without controllers in version 2.
std::optional<std::string> findGroup(const std::string &root,
                                     const Tree &tree) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    Fields fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() == 3 &&
        contains(absl::StrSplit(fields[1], ','), tree.controller))
      return fields[2];
  }
  return std::nullopt;
}

/// "max", the word for no limit, is no number.
std::optional<uint64_t> readNumber(const std::string &path) {
  uint64_t value = 0;
  std::ifstream file(path);
  return file >> value ? std::optional(value) : std::nullopt;
}

/// Bytes of files that are cached, of the group and those inside it.
uint64_t cacheBytes(const std::string &folder, const Version &version) {
  std::ifstream file(folder + "/memory.stat");
  uint64_t bytes = 0, value = 0;
  for (std::string name; file >> name >> value;) {
    absl::string_view kind = name;
    if (absl::ConsumePrefix(&kind, version.cachePrefix) &&
        (kind == "inactive_file" || kind == "active_file"))
      bytes += value;
  }
  return bytes;
}

uint64_t bytesLeft(const std::string &folder, const Version &version) {
  auto limit = readNumber(folder + "/" + version.limit),
       used = readNumber(folder + "/" + version.used);
  if (!limit || !used)
    return UINT64_MAX;
  uint64_t held = *used - std::min(*used, cacheBytes(folder, version));
  return *limit - std::min(*limit, held);
}

/// Calls `visit` with the folder of the process's group and of each around it.
void forEachGroup(const std::string &root, const Tree &tree,
                  absl::FunctionRef<void(const std::string &folder)> visit) {
  auto mount = findMount(root, tree);
  auto group = findGroup(root, tree);
  if (!mount || !group)
    return;
  std::string point = root + mount->point;
  // A container may see a part of the tree only: what is above its mount.
  absl::string_view inside = *group;
  bool isInside =
      mount->group == "/" || absl::ConsumePrefix(&inside, mount->group);
  if (!isInside || !absl::StartsWith(inside, "/"))
    inside = "";
  visit(point);
  for (; inside.size() > 1; inside = inside.substr(0, inside.rfind('/')))
    visit(point + std::string(inside));
}

/// Of version 2 both numbers are in one file, of version 1 each in its own; a
/// quota that is none is "max" or -1.
std::optional<double> coresOf(const std::string &folder, bool isVersion2) {
  std::ifstream first(folder + (isVersion2 ? "/cpu.max" : "/cpu.cfs_quota_us")),
      second(folder + "/cpu.cfs_period_us");
  int64_t quota = 0, period = 0;
  bool isThere = static_cast<bool>(first >> quota) &&
                 static_cast<bool>((isVersion2 ? first : second) >> period);
  if (!isThere || quota <= 0 || period <= 0)
    return std::nullopt;
  return static_cast<double>(quota) / static_cast<double>(period);
}
} // namespace

uint64_t controlGroupBytes(const std::string &root) {
  uint64_t least = UINT64_MAX;
  for (const Version &version : versions)
    forEachGroup(root, version.tree, [&](const std::string &folder) {
      least = std::min(least, bytesLeft(folder, version));
    });
  return least;
}

std::optional<double> controlGroupCores(const std::string &root) {
  std::optional<double> least;
  for (const Tree &tree : {Tree{"cgroup2", ""}, Tree{"cgroup", "cpu"}})
    forEachGroup(root, tree, [&](const std::string &folder) {
      std::optional<double> cores = coresOf(folder, !*tree.controller);
      if (cores)
        least = std::min(*cores, least.value_or(*cores));
    });
  return least;
}

} // namespace meshwork::runtime
