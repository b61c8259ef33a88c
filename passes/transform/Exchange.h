// Experts whose tokens are exchanged, as rounds.
#pragma once

#include "passes/transform/ExpertRows.h"

namespace meshwork::transform {

/// What replaces the results of an op that has axes to exchange over. In front
/// of it stand the first round, and an `expert_rounds` where there may be more.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
exchanged(transformer::ExpertsOp op, BuiltRows &built);
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
exchanged(transformer::ExpertsGradOp op, BuiltRows &built);

} // namespace meshwork::transform
