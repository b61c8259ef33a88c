// The actions of a plan by the names that traces give them. Internal to the
// reading of traces.
#pragma once

#include "lib/Explain/Trace.h"
#include <map>
#include <optional>

namespace meshwork::explain {

class TraceActions {
public:
  explicit TraceActions(const plan::Plan &plan);

  struct Action {
    uint32_t list = 0, microbatch = 0;
  };
  /// "0F3", "update": nothing when no such action is of the rank's program.
  std::optional<Action> find(uint64_t rank, const std::string &text) const;
  /// Whether an instruction of the list has this name, and is this operation
  /// (Plan.fbs).
  bool isInstruction(uint64_t rank, uint32_t list, uint64_t instruction,
                     const std::string &name,
                     const std::string &operation) const;

private:
  const plan::Program &programOf(uint64_t rank) const;

  const plan::Plan &plan;
  std::vector<std::map<std::string, Action>> actions; // by program
};

} // namespace meshwork::explain
