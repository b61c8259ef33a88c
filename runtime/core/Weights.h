// Parameters between the arena and files.
#pragma once

#include "absl/status/status.h"
#include "runtime/core/GlobalTensors.h"
#include "runtime/io/SafeTensors.h"
#include <string>
#include <vector>

namespace meshwork::runtime {

/// Compares the file's tensors with the parameters of all programs: dataLoss
/// with the first five missing, extra and reshaped ones.
absl::Status matchWeights(const plan::Plan &plan,
                          const SafeTensorsReader &file);

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
