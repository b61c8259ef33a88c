// An instruction of attention as a problem of cuDNN.
#pragma once

#include "runtime/device/cuda/AttentionGraph.h"
#include "runtime/device/cuda/Operation.h"

namespace meshwork::runtime::cuda {

/// What the engines are told of every tensor in memory; they do not look.
inline constexpr int64_t dnnAlignment = 16;

/// `Op` is plan::Attention or plan::AttentionGrad. unimplemented tells why the
/// plan's kernels must do it.
template <typename Op>
absl::StatusOr<AttentionProblem> problemOf(const Op &op,
                                           const OperationContext &context);

/// What the problem adds to what the time depends on (Tuned.h).
std::string keyOf(const AttentionProblem &problem, bool isGrad);

} // namespace meshwork::runtime::cuda
