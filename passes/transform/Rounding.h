// Values as FP8 has them, in a type that is wider: for products that take no
// operands of 8 bits.
#pragma once

#include "dialects/transformer/Transformer.h"

namespace meshwork::transform {

/// An infinity would become the format's largest number. Scales of the tensor
/// itself are NaN then; with those of other steps the value becomes NaN.
enum class Infinity { isInScale, becomesNan };

/// `value` times `scale` in `format`: f8E4M3FN, f8E5M2 or i8.
mlir::Value scaledTo8(mlir::OpBuilder &builder, mlir::Value value,
                      mlir::Value scale, mlir::Type format, Infinity infinity);
/// Of 8 bits, times `inverse`: exact where that is a power of two.
mlir::Value scaledBack(mlir::OpBuilder &builder, mlir::Value of8,
                       mlir::Value inverse, mlir::Type element);
/// The largest magnitude, of all elements or over `over`, by two ops: the
/// second one is returned. The first one has the dims in the order of `order`,
/// where that is given.
mlir::Value largestMagnitude(mlir::OpBuilder &builder, mlir::Value value,
                             transformer::DimsAttr over = {},
                             mlir::RankedTensorType order = {});

/// In the body of a map: what numbers of which `largest` is the largest
/// magnitude are multiplied with to reach `end`, and what undoes that. Where
/// they are so small that the first is no number, they count as zeros.
llvm::SmallVector<mlir::Value> factorsTo(mlir::ImplicitLocOpBuilder &builder,
                                         mlir::Value largest, float end);

} // namespace meshwork::transform
