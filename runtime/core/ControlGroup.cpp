// Formats: cgroups(7), proc(5), and in the kernel's documentation
// admin-guide/cgroup-v2.rst and admin-guide/cgroup-v1/memory.rst.
#include "runtime/core/ControlGroup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include <algorithm>
#include <fstream>
#include <optional>
#include <vector>

namespace meshwork::runtime {
namespace {

/// How a version calls things.
struct Version {
  const char *filesystem, *controller; // the controller in /proc/self/cgroup
  const char *limit, *used, *cachePrefix;
};
constexpr Version versions[] = {
    {"cgroup2", "", "memory.max", "memory.current", ""},
    {"cgroup", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
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
std::optional<Mount> findMount(const std::string &root,
                               const Version &version) {
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    Fields fields = absl::StrSplit(line, ' ');
    auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 5 || fields.end() - dash < 4 ||
        dash[1] != version.filesystem)
      continue;
    Fields options = absl::StrSplit(dash[3], ',');
    if (!*version.controller || contains(options, version.controller))
      return Mount{fields[4], fields[3]};
  }
  return std::nullopt;
}

/// Lines are: number:CONTROLLERS:GROUP, without controllers in version 2.
std::optional<std::string> findGroup(const std::string &root,
                                     const Version &version) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    Fields fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() == 3 &&
        contains(absl::StrSplit(fields[1], ','), version.controller))
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

uint64_t bytesLeft(const std::string &root, const Version &version,
                   const Mount &mount, absl::string_view group) {
  std::string point = root + mount.point;
  // A container may see a part of the tree only: what is above its mount.
  absl::string_view inside = group;
  bool isInside =
      mount.group == "/" || absl::ConsumePrefix(&inside, mount.group);
  if (!isInside || !absl::StartsWith(inside, "/"))
    inside = "";
  uint64_t least = bytesLeft(point, version);
  for (; inside.size() > 1; inside = inside.substr(0, inside.rfind('/')))
    least = std::min(least, bytesLeft(point + std::string(inside), version));
  return least;
}
} // namespace

uint64_t controlGroupBytes(const std::string &root) {
  uint64_t least = UINT64_MAX;
  for (const Version &version : versions) {
    auto mount = findMount(root, version);
    auto group = findGroup(root, version);
    if (mount && group)
      least = std::min(least, bytesLeft(root, version, *mount, *group));
  }
  return least;
}

} // namespace meshwork::runtime
