// How a kernel walks its cluster: which dims become which loops, where tensors
// lie along them, in which pass over a row each reduction is taken. Decided
// here once; emission follows.
#pragma once

#include "passes/codegen/KernelEmitter.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace meshwork::codegen {

/// Dims that are one loop: adjacent ones are joined where every tensor lies
/// contiguously along them. `key`, the innermost name, stands for all.
struct LoopDim {
  mlir::StringAttr key;
  int64_t size;
};

/// Steps of a tensor, in elements, along each dim that it has; dims of size one
/// are left out.
struct Access {
  mlir::RankedTensorType type;
  llvm::SmallDenseMap<mlir::StringAttr, int64_t, 4> strides;
  int64_t along(mlir::StringAttr key) const { return strides.lookup(key); }
};

/// What a reduction of a cluster is; see FusedOp.
enum class ReduceForm {
  columns, // over all cols: a value per row
  rows,    // over rows, or rows and cols: a chunk result
  vertical // over dims that are neither: a loop of its own
};

/// How work items cut the walk.
enum class Split {
  chunks,      // item c of C: rows [c R / C, (c + 1) R / C)
  rowBlocks,   // rowsPerItem rows each
  rowShares,   // as chunks, of rows that no sum crosses
  columnBlocks // columnsPerItem columns each; no rows
};

inline constexpr int64_t columnsPerItem = 4096;

struct ItemCount {
  Split split;
  int64_t items, rowsPerItem;
};
ItemCount countWalkItems(transformer::FusedOp op);

struct Walk {
  transformer::FusedOp op;
  llvm::SmallVector<LoopDim> rows, cols; // outermost first, without size one
  int64_t numRows = 1, numCols = 1;
  Split split = Split::rowBlocks;
  int64_t items = 1, rowsPerItem = 1;
  llvm::SmallVector<Access> inputs, results;
  /// Key under which chunk results keep the stride of their dim `chunk`.
  mlir::StringAttr chunkKey;
  /// Reductions over all cols by the pass that takes them; each depends only on
  /// those of earlier passes.
  llvm::SmallVector<llvm::SmallVector<transformer::ReduceOp>> passes;
  /// The pass that also stores results along cols: the last, so that a result
  /// may take an operand's place.
  unsigned storePass = 0;

  ReduceForm formOf(transformer::ReduceOp reduce) const;
  bool isChunked(unsigned result) const;
  /// The innermost loop, over vectors; null when there are no cols.
  mlir::StringAttr vectorKey() const {
    return cols.empty() ? mlir::StringAttr() : cols.back().key;
  }
  /// Whether an access moves along some of the cols.
  bool hasCols(const Access &access) const;
};

/// Fails with an error at the op where KernelEmitter.h says so.
mlir::FailureOr<Walk> planWalk(const KernelSpec &spec);

/// Row-major strides of `shape`.
llvm::SmallVector<int64_t> rowMajor(llvm::ArrayRef<int64_t> shape);

} // namespace meshwork::codegen
