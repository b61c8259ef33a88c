#include "lib/Explain/Estimate.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/Cost/OfPlan.h"
#include "lib/Cost/OfSpec.h"
#include "lib/Explain/Format.h"
#include "lib/Plan/Views.h"
#include "lib/Spec/Words.h"
#include "meshwork/Plan/Frame.h"
#include <algorithm>
#include <map>

namespace meshwork::explain {
namespace {
using plan::orEmpty;

} // namespace

cost::Times timesOn(const plan::Plan &plan, const cost::Machine &machine,
                    cost::Ranks ranks) {
  std::vector<uint64_t> mesh;
  for (const plan::Axis *axis : orEmpty(plan.mesh()))
    mesh.push_back(axis->size());
  return {machine, mesh, ranks};
}

namespace {
std::vector<Estimate::OfKind> byKind(const cost::Times &times,
                                     const plan::Program &program,
                                     const Listing &listing) {
  std::map<std::string, double> sums;
  for (const Phase &phase : listing.phases())
    for (uint64_t i = phase.begin; phase.runs > 0 && i < phase.end; ++i) {
      const plan::Collective *op = listing[i].op_as_Collective();
      uint64_t runs = op && op->last_only() ? 1 : phase.runs;
      double seconds =
          cost::secondsOfRun(times, program, listing[i]) *
          static_cast<double>(saturatingMul(runs, listing.timesOf(i)));
      if (seconds > 0)
        sums[operationKind(listing[i])] += seconds;
    }
  std::vector<Estimate::OfKind> kinds;
  for (const auto &[kind, seconds] : sums)
    kinds.push_back({kind, seconds});
  std::sort(kinds.begin(), kinds.end(), [](const auto &a, const auto &b) {
    return std::tie(b.seconds, a.kind) < std::tie(a.seconds, b.kind);
  });
  return kinds;
}
} // namespace

cost::MachineResult machineOf(const plan::Plan &plan) {
  return cost::machineOfPlan(
      plan.spec() ? plan.spec()->str() : "",
      *spec::readWord<spec::Device>(plan::EnumNameDevice(plan.device())));
}

Estimate estimate(const plan::Plan &plan, const plan::Program &program,
                  const Listing &listing, const cost::Machine &machine,
                  cost::Ranks ranks) {
  cost::Times times = timesOn(plan, machine, ranks);
  Estimate result;
  for (uint32_t list = 0; list < listing.phases().size(); ++list) {
    const Phase &phase = listing.phases()[list];
    if (phase.runs == 0)
      continue;
    double seconds =
        cost::secondsOfStep(times, program, list, phase.runs, &result.exposed);
    result.lists.push_back({phase.name, phase.runs, seconds, list});
    result.seconds += seconds;
  }
  result.kinds = byKind(times, program, listing);
  return result;
}

std::string timeText(double seconds) {
  double us = seconds * 1e6;
  if (us < 1e3)
    return absl::StrFormat("%.*f us", us < 100 ? 1 : 0, us);
  if (us < 1e6)
    return absl::StrFormat("%.*f ms",
                           us < 1e4   ? 2
                           : us < 1e5 ? 1
                                      : 0,
                           us / 1e3);
  return absl::StrFormat("%.*f s", us < 1e7 ? 2 : 1, us / 1e6);
}

std::string estimateText(const plan::Plan &plan, const plan::Program &program,
                         const Listing &listing) {
  cost::MachineResult machine = machineOf(plan);
  if (!machine.machine)
    return absl::StrCat(
        "\nEstimated time: none, the plan's machine is broken\n",
        textOf(machine.diagnostics));
  auto one =
      estimate(plan, program, listing, *machine.machine, cost::Ranks::threads);
  auto many = estimate(plan, program, listing, *machine.machine,
                       cost::Ranks::processes);
  Table lists({"list", ">runs a step", ">of a run", ">of a step"});
  for (const Estimate::OfList &list : one.lists)
    lists.add({list.name, absl::StrCat(list.runs),
               timeText(list.seconds / static_cast<double>(list.runs)),
               timeText(list.seconds)});
  Table kinds({"operation", ">of a step"});
  for (const Estimate::OfKind &kind : one.kinds)
    kinds.add({kind.kind, timeText(kind.seconds)});
  return absl::StrCat(
      "\nEstimated time on ", clean(machine.machine->name), ": ",
      timeText(one.seconds),
      plan.programs()->size() > 1 ? " of this rank's own in a step" : " a step",
      many.seconds == one.seconds
          ? ""
          : absl::StrCat(", ", timeText(many.seconds), " as processes"),
      "\n", lists.render(), kinds.render());
}

} // namespace meshwork::explain
