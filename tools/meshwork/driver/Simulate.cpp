#include "tools/meshwork/driver/Simulate.h"

#include "absl/strings/str_cat.h"
#include "lib/Cost/PlanPeak.h"
#include "lib/Plan/PlanFile.h"
#include "lib/Simulate/Simulation.h"
#include "lib/Spec/Words.h"
#include "tools/meshwork/driver/Files.h"
#include "tools/meshwork/driver/ScheduleTable.h"

namespace meshwork::driver {
namespace {

/// A shipped machine, or the path of a file.
std::optional<cost::MachineResult> readNamed(const SimulateOptions &options,
                                             int &code) {
  if (const cost::Machine *shipped = cost::findShipped(options.machine))
    return cost::readMachine(cost::print(*shipped), options.machine,
                             options.overrides);
  if (!options.machine.ends_with(".toml")) {
    std::string names;
    for (const cost::Machine &machine : cost::shippedMachines())
      absl::StrAppend(&names, names.empty() ? "" : ", ", machine.name);
    code = report(absl::InvalidArgumentError(absl::StrCat(
        "--machine: found ", quote(options.machine), ", expected one of ",
        names, ", or the path of a machine file, ending in .toml")));
    return std::nullopt;
  }
  std::optional<std::string> text =
      readFile(options.machine, code, cost::maxMachineBytes);
  if (!text)
    return std::nullopt;
  return cost::readMachine(*text, options.machine, options.overrides);
}

std::optional<cost::MachineResult>
readOne(const plan::Plan &plan, const SimulateOptions &options, int &code) {
  if (!options.machine.empty())
    return readNamed(options, code);
  cost::MachineResult own = explain::machineOf(plan);
  if (!own.machine || options.overrides.empty())
    return own;
  return cost::readMachine(cost::print(*own.machine), "the plan's machine",
                           options.overrides);
}

/// Nothing after a message.
std::optional<cost::Machine>
machineOf(const plan::Plan &plan, const SimulateOptions &options, int &code) {
  std::optional<cost::MachineResult> result = readOne(plan, options, code);
  if (!result)
    return std::nullopt;
  if (!result->machine) {
    std::fputs(textOf(result->diagnostics).c_str(), stderr);
    code = badSpec;
    return std::nullopt;
  }
  std::string device = plan::EnumNameDevice(plan.device());
  if (spec::wordOf(result->machine->device) != device) {
    code = report(absl::InvalidArgumentError(
        absl::StrCat("--machine: found one with device ",
                     quote(spec::wordOf(result->machine->device)),
                     ", expected that of the plan, ", quote(device))));
    return std::nullopt;
  }
  return result->machine;
}

/// Of the plan's pipeline.
int readCostsOf(const plan::Plan &plan, const SimulateOptions &options,
                schedules::Costs &costs) {
  if (options.costs.empty())
    return ok;
  if (!options.trace.empty())
    return report(absl::InvalidArgumentError(
        "--costs: found it with --trace, which shows instructions, and these "
        "costs are of whole actions; expected one of the two"));
  size_t stages = explain::numStages(plan);
  if (stages == 0)
    return report(absl::InvalidArgumentError(absl::StrCat(
        "--costs: found ", quote(options.plan),
        ", which has no pipeline or too long a schedule to simulate; expected "
        "the plan of a pipeline")));
  return readCosts(options.costs, stages, costs);
}

int writeTrace(const plan::Plan &plan, const simulate::Simulation &simulation,
               const std::string &path) {
  absl::StatusOr<std::string> trace = simulate::trace(plan, simulation);
  return trace.ok() ? writeFile(path, *trace) : report(trace.status());
}
} // namespace

int simulatePlan(const SimulateOptions &options) {
  int code = checkUses({{"the plan", options.plan},
                        {"--machine", options.machine},
                        {"--costs", options.costs},
                        {"--trace", options.trace, true}});
  if (code == ok && !options.trace.empty())
    code = checkOutput(options.trace);
  if (code != ok)
    return code;
  auto file = plan::PlanFile::open(options.plan);
  if (!file.ok())
    return report(file.status());
  const plan::Plan &plan = (*file)->plan();
  std::optional<cost::Machine> machine = machineOf(plan, options, code);
  if (!machine)
    return code;
  bool isNamed = !options.machine.empty() || cost::machineNamedBy(plan);
  schedules::Costs costs;
  if (code = readCostsOf(plan, options, costs); code != ok)
    return code;
  simulate::Simulation simulation = simulate::simulate(
      plan, *machine, isNamed, options.costs.empty() ? nullptr : &costs);
  if (!options.trace.empty())
    code = writeTrace(plan, simulation, options.trace);
  if (code != ok || options.trace == "-")
    return code;
  return writeOut(options.json ? simulate::json(plan, simulation)
                               : simulate::text(plan, simulation));
}

} // namespace meshwork::driver
