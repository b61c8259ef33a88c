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

/// `count` blocks, or an error at `op` when a GPU has no such grid.
mlir::FailureOr<int64_t> gridOf(mlir::Operation *op, int64_t threads,
                                int64_t block);

} // namespace meshwork::codegen
