// A tensor as a strided part of one buffer.
#pragma once

#include "dialects/mesh/Mesh.h"
#include "dialects/schedule/Schedule.h"
#include "dialects/transformer/Transformer.h"

namespace meshwork::schedule {

/// Elements that a rank's index along axes moves a place by.
struct PlaceShift {
  ::mlir::ArrayAttr axes;
  int64_t elements;
  bool operator==(const PlaceShift &) const = default;
};

/// A tensor in a buffer. `offset` and `strides` are in elements.
struct Place {
  ::mlir::Value buffer;
  int64_t offset = 0;
  ::llvm::SmallVector<int64_t> shape, strides;
  ::mlir::Type element;
  ::llvm::SmallVector<PlaceShift, 1> shifts = {};
  /// Elements that each turn of the repeats around moves it by, the outermost
  /// first.
  ::llvm::SmallVector<int64_t, 1> advances = {};
  /// Of a state: it means the value that this step's update makes.
  bool updated = false;
  bool operator==(const Place &) const = default;
};

/// Of one element, and of all.
int64_t elementBytes(const Place &place);
int64_t bytesOf(const Place &place);

/// False only when no rank finds an element in both, in one turn of the repeats
/// around them. Exact for slices of one tensor along any dims.
bool mayShareBytes(const Place &a, const Place &b);

/// The block of `whole` that a rank has when `dim` is split over `axes`.
Place blockOf(const Place &whole, int64_t dim, int64_t size,
              ::mlir::ArrayAttr axes);
/// What `slice` with this dim, offset and part type cuts out of `whole`.
Place partOf(const Place &whole, ::mlir::RankedTensorType wholeType,
             ::mlir::StringAttr dim, int64_t offset,
             ::mlir::RankedTensorType part);
/// `whole` as what `split` makes of its dim `dim`, which is as many elements as
/// all of `sizes` together.
Place splitOf(const Place &whole, int64_t dim, ::mlir::ArrayRef<int64_t> sizes);
/// The same of the types of a split or a merge.
Place splitOf(const Place &whole, ::mlir::RankedTensorType wholeType,
              ::mlir::StringAttr dim, ::mlir::RankedTensorType parts);
/// Where one turn of `repeat` has its part of a whole that it cuts.
Place turnOf(const Place &whole, ::mlir::RankedTensorType wholeType,
             transformer::RepeatOp repeat);
/// A view op of `place` at `builder`.
::mlir::Value viewOf(::mlir::OpBuilder &builder, ::mlir::Location loc,
                     const Place &place);

} // namespace meshwork::schedule
