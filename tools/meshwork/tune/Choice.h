// One point of the space that `meshwork tune` searches: what it writes into a
// spec, and what it is called in a table.
#pragma once

#include "tools/meshwork/tune/Word.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace meshwork::tune {

/// Words are those of a spec; "" leaves a key out.
struct Choice {
  // Axes, outermost first. With `fsdp` ZeRO splits over it and not over `dp`.
  uint32_t pp = 1, dp = 1, fsdp = 1, ep = 1, cp = 1, tp = 1;
  uint32_t micro = 1;         // sequences of a microbatch on a rank
  uint32_t virtualStages = 0; // 0: the schedule's own
  uint8_t zeroStage = 0;
  bool sequenceParallel = false; // shard.residual_sequence = ["tp"]
  Word gathered;                 // zero.gathered
  Word reduce;                   // zero.reduce
  Word method;                   // context.method
  Word layout;                   // context.layout
  Word exchange;                 // experts.exchange
  Word schedule;                 // pipeline.schedule
  Word recompute;                // recompute.policy
  bool offloads = false;         // offload.optimizer

  uint64_t ranks() const { return uint64_t{pp} * dp * fsdp * ep * cp * tp; }
  /// Ranks that split the batch.
  uint64_t dataParallel() const { return uint64_t{dp} * fsdp * ep; }
  /// Ranks that ZeRO splits over what they all have.
  uint64_t splitting() const { return uint64_t{fsdp > 1 ? fsdp : dp} * cp; }
  /// Whether ranks sum gradients in each microbatch, or once in a step.
  bool sumsEach() const { return zeroStage >= 2 && reduce != "step"; }
  auto operator<=>(const Choice &) const = default;
};

/// An axis of the mesh: its name in a spec, and its size in a choice.
struct AxisOfChoice {
  const char *name;
  uint32_t Choice::*size;
};
/// Outermost first.
inline constexpr AxisOfChoice axesOfChoices[] = {
    {"pp", &Choice::pp}, {"dp", &Choice::dp}, {"fsdp", &Choice::fsdp},
    {"ep", &Choice::ep}, {"cp", &Choice::cp}, {"tp", &Choice::tp}};

/// Its place among them.
constexpr uint32_t numberOf(uint32_t Choice::*size) {
  uint32_t number = 0;
  while (axesOfChoices[number].size != size)
    ++number;
  return number;
}

/// Sizes of all axes, outermost first.
inline std::vector<uint64_t> meshOf(const Choice &choice) {
  std::vector<uint64_t> sizes;
  for (AxisOfChoice axis : axesOfChoices)
    sizes.push_back(choice.*axis.size);
  return sizes;
}

/// Keys of a spec and their values as TOML.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// What a choice says of a spec, in the order of the sections.
Settings settingsOf(const Choice &choice);

/// "pp=2 dp=4 tp=8 sp, ZeRO-1, 1f1b, micro 1, selective"
std::string nameOf(const Choice &choice);

} // namespace meshwork::tune
