// The machine that a spec names: target.machine is the name of a shipped one,
// the path of a machine file, or, once that was read, what it holds.
#ifndef MESHWORK_LIB_COST_OFSPEC_H
#define MESHWORK_LIB_COST_OFSPEC_H

#include "lib/Cost/Machine.h"

#include <functional>

namespace meshwork::cost {

/// Puts what a machine file holds in the place of its path, so that a plan's
/// spec has the figures that it was planned for. A path begins in the folder of
/// `specFile` when `origin` (spec::Result::origins) is a place in it, else in
/// the working directory. `read` gives the text of a file, or nothing after it
/// has told why. The result is what is wrong, at `origin` or in the machine
/// file.
Diagnostics resolveMachine(
    spec::Spec &spec, const std::string &origin, const std::string &specFile,
    const std::function<std::optional<std::string>(const std::string &)> &read);

/// Of a spec whose machine was resolved without an error: the one it names, or
/// the default of its device.
Machine machineOf(const spec::Spec &spec);

/// The most bytes that a rank may need.
struct MemoryLimit {
  uint64_t bytes = 0;
  std::string from; // "expect.memory_per_rank", or which machine's memory
};

/// Of a spec like machineOf()'s: what it expects, else what its machine has for
/// a rank; nothing when neither is said.
std::optional<MemoryLimit> memoryLimit(const spec::Spec &spec);

/// Of a plan's spec, which may come from anywhere.
MachineResult machineOfPlan(const std::string &specText, spec::Device device);

} // namespace meshwork::cost

#endif // MESHWORK_LIB_COST_OFSPEC_H
