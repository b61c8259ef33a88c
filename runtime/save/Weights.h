// Parameters between the arena and files.
#pragma once

#include "absl/status/status.h"
#include "runtime/io/SafeTensors.h"
#include "runtime/save/GlobalTensors.h"
#include <memory>
#include <string>
#include <vector>

namespace meshwork::runtime {

struct MatchedWeights {
  /// Finds and reads by the names that the plan has.
  std::shared_ptr<const SafeTensorsReader> weights;
  /// "h.*.attn.bias (12), lm_head.weight": of the file, and no weights of the
  /// plan. Fit for a terminal.
  std::string skipped;
};

/// Finds the parameters of all programs among the file's tensors, also under
/// the other names that Hub repositories give them, and skips what these hold
/// beside weights (HubNames.h). A head beside an embedding that is tied to it
/// is skipped too, if it has the same values. Only `readsHead` looks, so one of
/// several processes may do so for all. Fails with dataLoss and the first five
/// missing, extra and reshaped tensors.
absl::StatusOr<MatchedWeights>
matchWeights(const plan::Plan &plan,
             std::shared_ptr<const SafeTensorsReader> file, bool readsHead);

/// Fills masters and weights from `file`, or from the seed when it is null:
/// each rank the blocks it holds. Runs on the rank's threads.
absl::Status placeWeights(Rank &rank, const SafeTensorsReader *file,
                          uint64_t seed);

/// Writes every parameter's master, or gradient of the last step, as one global
/// f32 tensor, whichever ranks hold its blocks. Where rank 0 is not, sends what
/// is here. Needs memory for one tensor.
absl::Status saveState(const std::string &path, StatePart part,
                       const plan::Plan &plan, const Mesh &mesh,
                       LocalRanks ranks, BlockExchange *exchange);

/// Gradients must survive to the end of a step: notFound, before training,
/// names one that does not, or that the plan does not keep.
absl::Status checkGradientsKept(const plan::Plan &plan);

} // namespace meshwork::runtime
