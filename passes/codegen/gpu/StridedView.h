// Views of a schedule as device functions see them.
#pragma once

#include "dialects/schedule/Schedule.h"

namespace meshwork::codegen {

/// A run of dims seen as one: `count` elements, `stride` apart.
struct Run {
  int64_t count = 1, stride = 1;
};

struct StridedView {
  mlir::Type element;
  llvm::SmallVector<int64_t> shape, strides; // strides in elements
  int64_t alignBytes; // of its first element, on every rank

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t bytes() const { return element.getIntOrFloatBitWidth() / 8; }
};

StridedView stridedView(mlir::Value view);

/// Dims [first, last) as one run; an error at `op` when their strides do not
/// nest.
mlir::FailureOr<Run> collapse(mlir::Operation *op, const StridedView &view,
                              int64_t first, int64_t last,
                              llvm::StringRef role);

/// `count` rows of `width` dense elements, `stride` apart.
struct Rows {
  StridedView view;
  int64_t count, width, stride;

  /// Whether each row begins at a multiple of so many bytes, on every rank.
  bool beginsAt(int64_t bytes) const;
};

/// The rows of a view cut before dim `split`, which counts from the end where
/// it is negative.
mlir::FailureOr<Rows> rowsOf(mlir::Operation *op, mlir::Value value,
                             int64_t split, llvm::StringRef role);
/// How many elements there are of a view without gaps.
mlir::FailureOr<int64_t> denseCount(mlir::Operation *op, mlir::Value value,
                                    llvm::StringRef role);
/// Columns of rows of `a` and `b`, equally wide, that one thread takes at once:
/// 16 bytes of the smaller elements, as far as widths, strides and alignments
/// allow.
int64_t vectorOf(const Rows &a, const Rows &b);

/// `count` blocks, or an error at `op` when a GPU has no such grid.
mlir::FailureOr<int64_t> gridOf(mlir::Operation *op, int64_t threads,
                                int64_t block);

} // namespace meshwork::codegen
