// What no part of a whole covers.
#pragma once

#include "passes/schedule/Layout.h"
#include "passes/schedule/ProgramBuilder.h"

namespace meshwork::schedule {

/// Parts are written where they lie; before the first of them, the gaps of
/// their whole are set to zero. Fails where a whole has no place.
class Gaps {
public:
  Gaps(ProgramBuilder &builder, Placement &placement)
      : builder(builder), placement(placement) {}

  /// Of wholes that `producer` makes a part of.
  ::mlir::LogicalResult zeroAround(::mlir::Operation *producer);
  /// Of one whole, with the whole that it is a part of, and that one's parts.
  ::mlir::LogicalResult zeroIn(transformer::UnsliceOp whole);

private:
  void fill(::mlir::Location loc, Place place,
            ::llvm::ArrayRef<CopyLoop> loops);

  ProgramBuilder &builder;
  Placement &placement;
  ::llvm::DenseSet<::mlir::Operation *> zeroed;
};

} // namespace meshwork::schedule
