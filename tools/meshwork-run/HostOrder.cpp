#include "tools/meshwork-run/HostOrder.h"
#include "absl/strings/str_cat.h"
#include "lib/Cost/PlanPeak.h"
#include "lib/Explain/StepTime.h"
#include "meshwork/Text/Counted.h"
#include "meshwork/Text/Escape.h"
#include <algorithm>
#include <optional>

namespace meshwork {
namespace {
using Hosts = std::vector<std::string>;

/// The first rank whose host is not the one that its neighbour's tells.
std::optional<uint32_t> firstOdd(const Hosts &hosts, uint32_t ranksPerNode) {
  for (uint32_t rank = 1; rank < hosts.size(); ++rank)
    if ((hosts[rank] == hosts[rank - 1]) != (rank % ranksPerNode != 0))
      return rank;
  return std::nullopt;
}

/// The last of them may have fewer, as the last node may.
uint32_t fewestNeighbours(const Hosts &hosts) {
  auto fewest = static_cast<uint32_t>(hosts.size());
  for (uint32_t rank = 1, begin = 0; rank < hosts.size(); ++rank)
    if (hosts[rank] != hosts[rank - 1]) {
      fewest = std::min(fewest, rank - begin);
      begin = rank;
    }
  return fewest;
}

std::string secondsText(const plan::Plan &plan, cost::Machine machine,
                        uint32_t ranksPerNode) {
  machine.ranksPerNode = ranksPerNode;
  return explain::timeText(
      explain::estimateStep(plan, machine, cost::Ranks::processes)
          .step.seconds);
}
} // namespace

std::string warningOfHosts(const plan::Plan &plan, const Hosts &hosts) {
  std::optional<cost::Machine> machine = cost::machineNamedBy(plan);
  if (!machine)
    return "";
  std::optional<uint32_t> odd = firstOdd(hosts, machine->ranksPerNode);
  if (!odd)
    return "";
  bool areTogether = hosts[*odd] == hosts[*odd - 1];
  return absl::StrCat(
      "target.machine ", quote(machine->name), " has ",
      counted(machine->ranksPerNode, "rank"),
      " on each node, in the order of their numbers; here ranks ", *odd - 1,
      " and ", *odd, " are ", areTogether ? "both on " : "on ",
      quote(hosts[*odd - 1]), areTogether ? "" : " and " + quote(hosts[*odd]),
      ". By the figures of that machine a step should take ",
      secondsText(plan, *machine, fewestNeighbours(hosts)),
      ", where the plan expects ",
      secondsText(plan, *machine, machine->ranksPerNode),
      ": start the ranks node by node, or compile for a machine with another "
      "ranks_per_node; --dry-run shows where each rank is");
}

} // namespace meshwork
