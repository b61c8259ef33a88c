// What a cluster's graph lets its kernel leave out.
#pragma once

#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/codegen/Walk.h"

namespace meshwork::codegen {

/// Whether the last bits of an exponential do not matter. Every use must hide
/// them: it rounds to 16 bits or fewer, asks for the largest only (the scale of
/// a copy in 8 bits), or adds up a softmax's row. A softmax's exponential is of
/// x less the row's maximum.
bool hidesLastBits(mlir::math::ExpOp op, const Walk &walk);

/// A comparison, for equality, of the column's index with an operand that has a
/// value per row, less that of `offset`, if there is one.
struct ColumnMatch {
  mlir::Operation *compare; // in a map
  mlir::Value column, offset;
};
/// Whether both are of the same column.
bool areAlike(const ColumnMatch &a, const ColumnMatch &b);
/// Of all maps; none where a row has several dims along its columns.
llvm::SmallVector<ColumnMatch> columnMatches(const Walk &walk);

/// A sum along the columns that has one term: an operand at the column that a
/// match names.
struct Pick {
  unsigned input; // of the cluster
  ColumnMatch match;
};
std::optional<Pick> pickOf(transformer::ReduceOp reduce, const Walk &walk);

/// The operand of the cluster that `value` is, as it is, or none.
std::optional<unsigned> inputOf(mlir::Value value);

} // namespace meshwork::codegen
