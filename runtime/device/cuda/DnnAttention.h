// Attention by cuDNN, as an operation.
#pragma once

#include "runtime/device/cuda/AttentionProblem.h"
#include "runtime/device/cuda/Operation.h"

namespace meshwork::runtime::cuda {

/// Runs it once, as the library loads code then, which a capture cannot.
/// unimplemented where the library has no engine for it.
absl::StatusOr<std::unique_ptr<Operation>>
makeDnnAttention(Dnn &dnn, const AttentionProblem &problem, bool isGrad,
                 const AttentionPlaces &places, Stream stream);

} // namespace meshwork::runtime::cuda
