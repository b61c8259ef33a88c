// An instruction of attention as a problem that others than the plan's kernels
// may run, too: bf16 of whole sequences, without dropout.
#pragma once

#include "runtime/device/cuda/AttentionGraph.h"
#include "runtime/device/cuda/Operation.h"

namespace meshwork::runtime::cuda {

/// Rows of a head begin at multiples of so many bytes.
inline constexpr int64_t attentionAlignment = 16;

/// `Op` is plan::Attention or plan::AttentionGrad. unimplemented tells why the
/// plan's kernels must do it.
template <typename Op>
absl::StatusOr<AttentionProblem> problemOf(const Op &op,
                                           const OperationContext &context);
/// The same of what cuDNN takes less, besides checkGraph.
template <typename Op>
absl::Status checkForDnn(const Op &op, const OperationContext &context);

/// What the problem adds to what the time depends on (Tuned.h).
std::string keyOf(const AttentionProblem &problem, bool isGrad);

} // namespace meshwork::runtime::cuda
