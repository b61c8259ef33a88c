// Machines that are known by name.
#include "lib/Cost/Machine.h"

#include "lib/Spec/Words.h"

#include <cassert>

namespace meshwork::cost {

/// Of examples/machines; made from them by the build, ends with a null.
extern const char *const shippedTexts[];

const std::vector<Machine> &shippedMachines() {
  static const std::vector<Machine> machines = [] {
    std::vector<Machine> all;
    for (const char *const *text = shippedTexts; *text; ++text) {
      MachineResult result = readMachine(*text, "a shipped machine");
      assert(result.machine && "a file of examples/machines is broken");
      all.push_back(*result.machine);
    }
    return all;
  }();
  return machines;
}

const Machine *findShipped(std::string_view name) {
  for (const Machine &machine : shippedMachines())
    if (machine.name == name)
      return &machine;
  return nullptr;
}

const Machine &defaultMachine(spec::Device device) {
  return *findShipped(spec::wordOf(device));
}

} // namespace meshwork::cost
