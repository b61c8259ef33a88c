// What the kinds of work in a step take on a team of threads. All rates are
// means over seconds without a pause, since a step goes on for longer than a
// processor's best moments. Kinds take turns, so a slow moment of the machine
// slows them all.
#pragma once

#include "absl/status/statusor.h"
#include "meshwork/Plan/Plan.h"
#include "runtime/base/ThreadTeam.h"

namespace meshwork::runtime {

/// Of products and attention with operands of one type.
struct TypeRates {
  /// Flops a second of the products of a layer's forward and backward pass.
  double products = 0;
  /// A product of so many flops reaches half of that: each takes as long as if
  /// it had so many more.
  double halfSize = 0;
  /// Flops a second of causal attention, and of its gradient, as plans count
  /// them: what the mask hides is left out, the gradient is twice the forward
  /// pass.
  double attention = 0, gradient = 0;
};

struct WorkRates {
  TypeRates f32, bf16;
  /// Bytes a second: what generated kernels read and write, and what a copy
  /// beyond the caches does.
  double kernelBytes = 0, copyBytes = 0;
};

/// Takes about four seconds. Called by all ranks of a node at the same time,
/// since cores share power and memory.
absl::StatusOr<WorkRates> measureWork(ThreadTeam &team);

} // namespace meshwork::runtime
