// Parts of emitKernel.
#pragma once

#include "passes/codegen/BodyEmitter.h"

namespace meshwork::codegen {

/// Elements of a vector where `roots` are computed together: a power of two, at
/// least 2 when there are cols, else 1.
int64_t chooseWidth(const Walk &walk, const CpuTarget &target,
                    llvm::ArrayRef<mlir::Value> roots);
/// Ends of the ranges of columns in which no roll wraps around.
llvm::SmallVector<int64_t> segmentEnds(const Walk &walk);
/// By how much rolls of the walk shift what they read, in all sums that occur;
/// without zero.
llvm::SmallVector<int64_t> rotationsOf(const Walk &walk);

/// Instructions of one op of a map's body, roughly.
int64_t costOf(mlir::Operation *op);
/// Values of map bodies that are kept for the row once computed, and in which
/// row of scratch; each row is laid out as scratchAccess.
llvm::DenseMap<mlir::Value, unsigned> scratchValues(const Walk &walk);
/// One row of f32, along the cols.
Access scratchAccess(const Walk &walk);

} // namespace meshwork::codegen
