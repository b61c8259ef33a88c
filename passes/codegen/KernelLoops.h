// Parts of emitKernel.
#pragma once

#include "passes/codegen/BodyEmitter.h"

namespace meshwork::codegen {

/// Elements of a vector where `roots` are computed together: a power of two, at
/// least 2 when there are cols, else 1.
int64_t chooseWidth(const Walk &walk, const CpuTarget &target, llvm::ArrayRef<mlir::Value> roots);
/// Ends of the ranges of columns in which no roll wraps around.
llvm::SmallVector<int64_t> segmentEnds(const Walk &walk);
/// By how much rolls of the walk shift what they read, in all sums that occur;
/// without zero.
llvm::SmallVector<int64_t> rotationsOf(const Walk &walk);

/// Instructions of one op of a map's body, roughly.
int64_t costOf(mlir::Operation *op);
/// Results of maps that are kept for the row once computed, as scratchAccess lays out.
llvm::SmallVector<mlir::Value> scratchValues(const Walk &walk);
/// One row of f32, along the cols.
Access scratchAccess(const Walk &walk);

} // namespace meshwork::codegen
