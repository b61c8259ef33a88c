// Gradients, from their state through the collectives that reduce them.
#pragma once

#include "passes/schedule/Placement.h"

namespace meshwork::schedule {

/// What @update has made of each gradient: it is kept to the end of the step,
/// for those who save gradients.
class ReducedGradients {
public:
  explicit ReducedGradients(Placement &placement) : placement(placement) {}

  /// The parameter whose gradient `value` is, or is made of by collectives; ""
  /// for anything else.
  ::llvm::StringRef parameterOf(::mlir::Value value) const;
  /// Where `to`, made of `from`, goes when it is no part of that.
  ::mlir::FailureOr<Place> placeOf(::mlir::Value from, ::mlir::Value to);
  /// Puts it there. If `from` is a gradient, it is one too.
  void put(::mlir::Value from, ::mlir::Value to, const Place &place);
  /// The same of the gradient of a parameter.
  void put(::llvm::StringRef parameter, ::mlir::Value to, const Place &place);
  /// Where the last value of a gradient lies; null: nothing reduces it.
  const Place *find(::llvm::StringRef parameter) const;

private:
  Placement &placement;
  ::llvm::DenseMap<::mlir::Value, ::llvm::StringRef> names;
  ::llvm::StringMap<Place> last; // by parameter
};

} // namespace meshwork::schedule
