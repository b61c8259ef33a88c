// Which part of the whole a rank has, for ops that count positions there: rows
// of split tables, positions of tokens, queries of attention, draws. The op
// asks in `tellPart`; passes/partition answers. Values still have the whole's
// types.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace meshwork::transformer {

/// What tells a map whether an element along a dim is one of the rank's own.
struct OwnElements {
  ::mlir::StringAttr dim;
  ::mlir::Value operand; // of the map: how many there are, or their positions
  bool isTable;
  /// In the map's body, whose argument for `operand` is `value`.
  ::mlir::Value test(::mlir::ImplicitLocOpBuilder &builder,
                     ::mlir::Value value) const;
};

class RankPart {
public:
  virtual ~RankPart() = default;

  /// Whether ranks share that dim of the value.
  virtual bool isSplit(::mlir::Value value, unsigned dim) const = 0;
  /// Whether each part is one range.
  virtual bool isBlock(::mlir::Value value, unsigned dim) const = 0;
  /// Whether some rank's part ends before its storage does.
  virtual bool isUneven(::mlir::Value value, unsigned dim) const = 0;
  /// Whether no two ranks have the same part of the value.
  virtual bool isUnique(::mlir::Value value) const = 0;
  /// The axes that split the dim.
  virtual ::mlir::ArrayAttr axesOf(::mlir::Value value, unsigned dim) const = 0;
  /// The type of the part, with elements of another type.
  virtual ::mlir::RankedTensorType typeOf(::mlir::Value value,
                                          ::mlir::Type element) const = 0;

  // Made before the op:
  /// Where the rank's range begins, a scalar.
  virtual ::mlir::Value first(::mlir::Value value, unsigned dim) = 0;
  /// How many elements it has, a scalar.
  virtual ::mlir::Value extent(::mlir::Value value, unsigned dim) = 0;
  /// Which elements it has, along the dim; -1 in the padding.
  virtual ::mlir::Value positions(::mlir::Value value, unsigned dim) = 0;
  /// What tells its elements from padding.
  virtual OwnElements own(::mlir::Value value, unsigned dim) = 0;
};

/// f32 of the first `numDims` dims of `of`, made before `at`: 1, or 0 for what
/// is padding of a split dim, or for which one of `counted`, i32 of these dims,
/// is negative. Null where it would be 1 everywhere.
::mlir::Value buildOwn(::mlir::Operation *at, ::mlir::Value of,
                       unsigned numDims, RankPart &part,
                       ::mlir::ValueRange counted = {});

} // namespace meshwork::transformer
