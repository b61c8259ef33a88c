// State that is added to, and who sets it.
#pragma once

#include "passes/schedule/ProgramBuilder.h"

namespace meshwork::schedule {

/// Where a product or an embedding gradient goes, and whether it adds there.
struct Destination {
  Place place;
  Accumulate accumulate;
  StateKey key = {}; // of what it sets in the first microbatch
};

/// A sum is set by the first product that adds to it, in the first microbatch.
/// One that anything else adds to starts the step at zero.
class Sums {
public:
  Sums(ProgramBuilder &builder, Placement &placement)
      : builder(builder), placement(placement) {}

  /// Fills all that starts at zero, before anything adds to it.
  void start(::mlir::func::FuncOp microbatch);
  /// Fails where `value` has no place.
  ::mlir::FailureOr<Destination> destinationOf(::mlir::Value value);
  /// For who must find the sum there, as it adds to a copy.
  void neverSet(Destination &destination);

private:
  void zero(StateKey key, ::mlir::RankedTensorType type);
  void zeroThoseOfUpdate(::mlir::func::FuncOp microbatch);

  ProgramBuilder &builder;
  Placement &placement;
  ::llvm::DenseSet<StateKey> set;    // by an earlier product
  ::llvm::DenseSet<StateKey> zeroed; // at the start of a step
};

} // namespace meshwork::schedule
