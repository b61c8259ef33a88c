// What lies behind the end of a rank's part of a dim that its axes do not
// divide, as far as the compiler knows. The README of passes/partition has the
// rules.
//
//   Padding product = times(zeroPadding(), realValue());   // zero
#pragma once

#include "mlir/IR/BuiltinAttributes.h"

#include <limits>
#include <optional>

namespace meshwork::transformer {

/// Known about all elements of the padding at once.
struct Padding {
  /// Independent of padding: what the whole program computes, too. If such a
  /// value is not finite, then neither is it on one rank.
  bool isReal = false;
  bool isFinite = false;
  std::optional<double> constant;                        // the one value of all
  double low = -std::numeric_limits<double>::infinity(); // no element is below

  bool isZero() const { return constant && *constant == 0; }
};

Padding anyPadding();
Padding finitePadding();
Padding constantPadding(double value);
inline Padding zeroPadding() { return constantPadding(0); }
/// A value that is no padding: of a tensor that lacks the dim.
Padding realValue();

/// One or the other.
Padding either(const Padding &a, const Padding &b);
Padding times(const Padding &a, const Padding &b);
Padding plus(const Padding &a, const Padding &b);
/// A sum of any number of such elements.
Padding sumOf(const Padding &element);

/// What is known of a value's padding along a dim.
using PaddingOf =
    ::llvm::function_ref<Padding(::mlir::Value, ::mlir::StringAttr)>;

/// What an operand must have in the padding of a dim, so that it reaches no
/// result.
struct PaddingNeed {
  enum Kind { finite, zero, lowest, negative }; // -1, of numbers
  unsigned operand;
  ::mlir::StringAttr dim;
  Kind kind;
};
using PaddingNeeds = ::llvm::SmallVector<PaddingNeed>;

} // namespace meshwork::transformer
