// Parameters between the arena and files.
#pragma once

#include "absl/status/status.h"
#include "runtime/core/Rank.h"
#include "runtime/io/SafeTensors.h"
#include <string>
#include <vector>

namespace meshwork::runtime {

/// Compares the file's tensors with the parameters of all programs: dataLoss
/// with the first five missing, extra and reshaped ones.
absl::Status matchWeights(const plan::Plan &plan,
                          const SafeTensorsReader &file);

/// Fills masters from `file`, or from the seed when it is null, then rounds
/// them to the weights. Runs on the rank's threads.
absl::Status placeWeights(Rank &rank, const SafeTensorsReader *file,
                          uint64_t seed);

/// Writes every parameter's master once, whichever rank holds it.
absl::Status saveWeights(const std::string &path,
                         const std::vector<std::unique_ptr<Rank>> &ranks);

/// Gradients must survive to the end of a step: notFound, before training,
/// names one that does not, or that the plan does not keep.
absl::Status checkGradientsKept(const plan::Plan &plan);

/// Writes every gradient of the last step as f32.
absl::Status saveGradients(const std::string &path,
                           const std::vector<std::unique_ptr<Rank>> &ranks);

} // namespace meshwork::runtime
