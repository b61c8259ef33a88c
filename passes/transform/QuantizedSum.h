// A gradient that is reduced in 8 or 4 bits: rounded in blocks with a scale
// each, exchanged, and added up in f32 by the rank that stores the sum.
//
//   Blocks blocks(type, /*scattered=*/0, spec::GradientType::int8, 256);
//   Value sum = QuantizedSum(builder, op, {axes, ranks}, blocks)
//                   .run(gradient, element, parameter);
#pragma once

#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Transformer.h"
#include "lib/Spec/Spec.h"

namespace meshwork::transform {

/// How a matrix is cut into blocks: along the last dim that is not scattered,
/// by a divisor near to `most`. Of two dims at least.
struct Blocks {
  Blocks(::mlir::RankedTensorType type, int64_t scattered,
         spec::GradientType bits, int64_t most);
  /// The largest number that stands for an element.
  float largest() const { return parts == 2 ? 7 : 127; }

  int64_t dim;
  int64_t parts; // numbers in a byte, which are from this many parts of a block
  int64_t length; // of a block
  int64_t count;
};

/// Ranks that add up.
struct SumOver {
  ::mlir::ArrayAttr axes;
  int64_t ranks;
};

/// What takes the place of one reduce_scatter, or of its sum over some axes.
class QuantizedSum {
public:
  /// With `errors`, the squares of what rounding changes on this rank are added
  /// up, and the sum is put there: an f32 of no dims.
  QuantizedSum(::mlir::OpBuilder &builder, mesh::ReduceScatterOp op,
               const SumOver &over, const Blocks &blocks,
               ::llvm::SmallVectorImpl<::mlir::Value> *errors = nullptr)
      : b(op.getLoc(), builder), op(op), over(over), blocks(blocks),
        errors(errors) {}

  /// This rank's part of the sum, as `element`. With `parameter` it is the
  /// gradient that a step ends with.
  ::mlir::Value run(::mlir::Value gradient, ::mlir::Type element,
                    ::mlir::StringAttr parameter);

private:
  using Dim = std::pair<::mlir::StringAttr, int64_t>;
  ::mlir::StringAttr fresh(::llvm::StringRef base) const;
  ::llvm::SmallVector<::mlir::Value> cut(::mlir::Value gradient);
  std::pair<::mlir::Value, ::mlir::Value>
  scalesOf(::mlir::ArrayRef<::mlir::Value> parts);
  ::mlir::Value rounded(::mlir::ArrayRef<::mlir::Value> parts,
                        ::mlir::Value scale);
  ::mlir::Value squaredError(::mlir::Value part, ::mlir::Value scale,
                             ::mlir::Value inverse);
  ::mlir::Value exchanged(::mlir::Value value);
  ::mlir::Value perRank(::mlir::Value value);
  ::llvm::SmallVector<::mlir::Value>
  sumsOf(::mlir::Value numbers, ::mlir::Value scales, ::mlir::Type element);
  ::mlir::Value joined(::mlir::ArrayRef<::mlir::Value> sums);

  ::mlir::ImplicitLocOpBuilder b;
  mesh::ReduceScatterOp op;
  SumOver over;
  Blocks blocks;
  ::llvm::SmallVectorImpl<::mlir::Value> *errors;
  ::mlir::RankedTensorType whole;
  ::mlir::StringAttr inner, outer, halves, ranks; // names of dims
};

} // namespace meshwork::transform
