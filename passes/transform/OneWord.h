// One number a forward pass that says whether some exchange of it needs a
// further round, in place of one a layer.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace meshwork::transform {

/// By `expert_rounds` of the backward pass: 1 where any rank that meets in its
/// forward pass needs a further round anywhere there, 0 else.
using Words = llvm::DenseMap<mlir::Operation *, mlir::Value>;

/// Has each forward pass of `microbatch`, in a pipeline that of each stage, run
/// with one round of each exchange. Behind it a repeat of at most one turn runs
/// it again with all rounds (`WideForm`), where its word says so. Nothing
/// changes in a pass where that saves no number, or with effects that cannot
/// run twice.
Words askOnce(mlir::func::FuncOp microbatch);

} // namespace meshwork::transform
