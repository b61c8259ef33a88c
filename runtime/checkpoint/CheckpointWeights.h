// The weights of a checkpoint as a safetensors reader gives them, to begin a
// new run with, or to write a repository of.
#pragma once

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/io/SafeTensors.h"
#include <optional>

namespace meshwork::runtime {

/// The folder of the checkpoint that `path` names: itself, or of a folder of
/// several the newest complete one; nothing where it is neither.
std::optional<std::string> checkpointIn(const std::string &path);

/// Names, and shapes as files have them, all F32.
std::unique_ptr<SafeTensorsReader>
weightsOf(std::shared_ptr<const Checkpoint> checkpoint);
absl::StatusOr<std::unique_ptr<SafeTensorsReader>>
openCheckpointWeights(const std::string &folder);

} // namespace meshwork::runtime
