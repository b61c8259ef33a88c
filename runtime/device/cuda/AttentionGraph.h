// Attention and its gradient as graphs of cuDNN.
//
// The graphs are those that cudnn-frontend makes of its SDPA nodes without
// dropout, bias or padding for libraries before 9.21: cuDNN's fused engines
// know them (its documentation, "Attention"). Let P = softmax(scale Q K^T where
// visible), O = P V and stats = ln sum exp of scores. Then
//   dP = dO V^T, dS = P (dP - rowsum(dO O)) scale,
//   dQ = dS K, dK = dS^T Q, dV = P^T dO.
#pragma once

#include "absl/status/status.h"
#include "runtime/device/cuda/AttentionProblem.h"
#include "runtime/device/cuda/DnnGraph.h"

namespace meshwork::runtime::cuda {

/// Numbers of its tensors in memory.
struct AttentionGraph {
  DnnGraph graph;
  size_t q, k, v, out, stats; // stats: f32 [batch, heads, sequence, 1]
  size_t documents = 0;       // i32 [batch, 1, sequence, 1] without gaps
  size_t dout = 0, dq = 0, dk = 0, dv = 0;
  /// Sums that the gradient needs in between, f32: a number per query, and dq.
  /// Both without gaps and not cleared.
  size_t rowSums = 0, dqSums = 0;
};

/// unimplemented tells what of the problem a graph does not describe.
absl::Status checkGraph(const AttentionProblem &problem);
/// Of a problem that it takes.
AttentionGraph attentionGraph(const AttentionProblem &problem);
AttentionGraph attentionGradGraph(const AttentionProblem &problem);

} // namespace meshwork::runtime::cuda
