#include "lib/Cost/OfSpec.h"

#include "lib/Spec/Document.h"
#include "lib/Spec/FilePath.h"
#include "lib/Spec/Words.h"

namespace meshwork::cost {
namespace {

constexpr const char *key = "target.machine";

bool isText(const std::string &value) {
  return value.find('\n') != std::string::npos;
}

std::vector<std::string> shippedNames() {
  std::vector<std::string> names;
  for (const Machine &machine : shippedMachines())
    names.push_back(machine.name);
  return names;
}

std::string unknownName(const std::string &value) {
  std::string known;
  for (const std::string &name : shippedNames())
    known += quote(name) + ", ";
  return "found " + quote(value) + ", expected " + known +
         "or the path of a machine file, which ends in .toml" +
         suggestion(value, shippedNames());
}

/// What `value` names, apart from a path.
MachineResult named(const std::string &value, const std::string &where) {
  if (isText(value))
    return readMachine(value, where);
  if (const Machine *shipped = findShipped(value))
    return {*shipped, {}};
  return {std::nullopt,
          {{Severity::error,
            {where, 0, 0},
            std::string(key) + ": " + unknownName(value)}}};
}
} // namespace

Diagnostics resolveMachine(
    spec::Spec &spec, const std::string &origin, const std::string &specFile,
    const std::function<std::optional<std::string>(const std::string &)>
        &read) {
  if (spec.machine.empty())
    return {};
  bool isPath = !isText(spec.machine) && spec.machine.ends_with(".toml");
  MachineResult result;
  if (isPath) {
    std::string path = spec::pathOf(spec.machine, origin, specFile);
    std::optional<std::string> text = read(path);
    if (!text)
      return {{Severity::error,
               {origin, 0, 0},
               std::string(key) + ": " + spec::cannotRead(path)}};
    result = readMachine(*text, path);
  } else {
    result = named(spec.machine, origin);
  }
  if (!result.machine)
    return result.diagnostics;
  if (result.machine->device != spec.device)
    return {{Severity::error,
             {origin, 0, 0},
             std::string(key) + ": found a machine with device " +
                 quote(spec::wordOf(result.machine->device)) +
                 ", expected that of target.device, " +
                 quote(spec::wordOf(spec.device))}};
  if (isPath || isText(spec.machine))
    spec.machine = print(*result.machine);
  return result.diagnostics;
}

Machine machineOf(const spec::Spec &spec) {
  return spec.machine.empty() ? defaultMachine(spec.device)
                              : named(spec.machine, key).machine.value();
}

std::optional<MemoryLimit> memoryLimit(const spec::Spec &spec) {
  if (spec.memoryPerRankBytes)
    return MemoryLimit{*spec.memoryPerRankBytes, "expect.memory_per_rank"};
  Machine machine = machineOf(spec);
  if (machine.capacity == 0)
    return std::nullopt;
  return MemoryLimit{
      static_cast<uint64_t>(machine.capacity * machine.share(spec.numRanks())),
      "memory.capacity of target.machine " + quote(machine.name)};
}

MachineResult machineOfPlan(const std::string &specText, spec::Device device) {
  Diagnostics ignored; // a spec that cannot be read names no machine
  spec::Document document =
      spec::readDocument(specText, "the plan's spec", {}, ignored);
  auto entry = document.find(key);
  if (entry == document.end())
    return {defaultMachine(device), {}};
  return named(entry->second.value.text, "the plan's spec");
}

} // namespace meshwork::cost
