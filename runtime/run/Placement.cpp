#include "runtime/run/Placement.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/Plan/StatusMacros.h"
#include "meshwork/Text/Counted.h"
#include "meshwork/Text/Escape.h"
#include <algorithm>
#include <set>

namespace meshwork::runtime {
namespace {
/// "cores 0-3,8"
std::string coresText(const CoreShare &share) {
  const std::vector<int> &cpus = share.cpus;
  if (cpus.empty())
    return counted(share.threads, "thread");
  std::vector<std::string> rows;
  for (size_t i = 0, last = 0; i < cpus.size(); i = last + 1) {
    for (last = i; last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1;)
      ++last;
    rows.push_back(last == i ? absl::StrCat(cpus[i])
                             : absl::StrCat(cpus[i], "-", cpus[last]));
  }
  return absl::StrCat(cpus.size() == 1 ? "core " : "cores ",
                      absl::StrJoin(rows, ","));
}

/// "dp 0, tp 3"
std::string coordinatesOf(const plan::Plan &plan, const Mesh &mesh,
                          uint32_t rank) {
  std::vector<std::string> parts;
  for (uint32_t axis = 0; axis < plan.mesh()->size(); ++axis)
    parts.push_back(
        absl::StrCat(printable(plan.mesh()->Get(axis)->name()->str()), " ",
                     mesh.coordinate(rank, axis)));
  return absl::StrJoin(parts, ", ");
}

/// On how many hosts the group of `rank` is.
size_t hostsOfGroup(const Mesh &mesh, const Placement &placement, uint32_t rank,
                    uint32_t axis) {
  std::set<std::string> hosts;
  for (uint32_t member : mesh.group(rank, {axis}))
    hosts.insert(placement.hosts[member]);
  return hosts.size();
}

std::string axisText(const plan::Plan &plan, const Mesh &mesh,
                     const Placement &placement, uint32_t axis) {
  uint32_t size = plan.mesh()->Get(axis)->size(), crossing = 0, groups = 0;
  size_t most = 1;
  for (uint32_t rank = 0; rank < mesh.numRanks(); ++rank) {
    if (mesh.coordinate(rank, axis) != 0)
      continue;
    size_t hosts = hostsOfGroup(mesh, placement, rank, axis);
    most = std::max(most, hosts);
    crossing += hosts > 1;
    ++groups;
  }
  std::string name = printable(plan.mesh()->Get(axis)->name()->str());
  if (size == 1)
    return absl::StrFormat("axis %s = 1: nothing is sent\n", name);
  if (crossing == 0)
    return absl::StrFormat("axis %s = %d: within a host\n", name, size);
  return absl::StrFormat(
      "axis %s = %d: between hosts, %s of %s on up to %d hosts\n", name, size,
      crossing == groups ? "each" : absl::StrCat(crossing),
      counted(groups, "group"), most);
}
} // namespace

absl::StatusOr<Placement> placementOf(const Processes &processes,
                                      const Device &device,
                                      const std::vector<CoreShare> &cores) {
  std::vector<std::string> mine;
  for (uint32_t rank = 0; rank < cores.size(); ++rank)
    if (cores[rank].threads > 0) {
      std::string gpu = device.placeOf(rank);
      mine.push_back(gpu.empty() ? coresText(cores[rank]) : gpu);
    }
  std::vector<std::string> all;
  MESHWORK_ASSIGN_OR_RETURN(all, processes.exchange(absl::StrJoin(mine, "\n")));
  return Placement{processes.hosts(),
                   absl::StrSplit(absl::StrJoin(all, "\n"), '\n')};
}

std::string textOf(const plan::Plan &plan, const Placement &placement) {
  Mesh mesh = meshOf(plan);
  std::set<std::string> hosts(placement.hosts.begin(), placement.hosts.end());
  std::string text =
      absl::StrFormat("%s on %s\n", counted(mesh.numRanks(), "rank"),
                      counted(hosts.size(), "host"));
  for (uint32_t rank = 0; rank < mesh.numRanks(); ++rank)
    absl::StrAppendFormat(
        &text, "rank %d (%s): %s, %s\n", rank, coordinatesOf(plan, mesh, rank),
        printable(placement.hosts[rank]), printable(placement.devices[rank]));
  for (uint32_t axis = 0; axis < plan.mesh()->size(); ++axis)
    absl::StrAppend(&text, axisText(plan, mesh, placement, axis));
  return text;
}

} // namespace meshwork::runtime
