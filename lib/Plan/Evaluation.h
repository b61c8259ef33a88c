// What of a step's lists an evaluation runs: all that the loss and the metrics
// are made of, and nothing else. So it needs no lists of its own, and no
// memory: it runs a part of a step in the step's own order and buffers.
//
//   Evaluation of = evaluationOf(program, table, views);
//   of.runs(list);             // some of it; else its actions are passed over
//   of.runs(list, instruction);
#pragma once

#include "absl/types/span.h"
#include "lib/Plan/Actions.h"
#include "lib/Plan/Views.h"
#include <vector>

namespace meshwork::plan {

class Evaluation {
public:
  /// Of nothing; nothing below may be asked.
  Evaluation() = default;
  explicit Evaluation(std::vector<std::vector<bool>> kept);

  bool runs(uint32_t list) const { return any[list]; }
  bool runs(uint32_t list, uint32_t instruction) const {
    return kept[list][instruction];
  }

private:
  std::vector<std::vector<bool>> kept; // by list and instruction
  std::vector<bool> any;               // by list
};

/// Results are those at `lookPoint`, the norm of the gradients left out. What
/// goes to the next stage of a pipeline is needed there; gradients that come
/// back are not. It may keep more than it must: an instruction stays if it
/// writes into a buffer that something behind it reads.
Evaluation evaluationOf(const Program &program, const ActionTable &table,
                        absl::Span<const ViewInfo> views);

} // namespace meshwork::plan
