// A step on one rank with whole tensors: what all ranks together must compute.
#pragma once

#include "lib/Spec/Spec.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/verify/States.h"

namespace meshwork::verify {

/// The same step for one rank: no mesh and nothing that names its axes; a
/// microbatch has the sequences of all ranks.
spec::Spec oneRankOf(const spec::Spec &spec);

/// Runs @microbatch for each of `microbatches` equal shares of the samples, and
/// @update. `module` has gone through the phase `fuse` for a spec without a
/// mesh: there constants are f32, as in the plan. Fails with a diagnostic.
mlir::FailureOr<StepEnd>
runReference(mlir::ModuleOp module, const StepData &data, int64_t microbatches);

} // namespace meshwork::verify
