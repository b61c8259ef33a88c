// Elements of 8 bits, f8E4M3FN or f8E5M2, as i8.
#pragma once

#include "dialects/transformer/Transformer.h"

namespace meshwork::codegen {

/// The f32 that `stored` stands for.
mlir::Value fromFloat8(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value stored, mlir::Type element);
/// To nearest, ties to even; what is beyond the largest number, infinities too,
/// becomes that number; NaN stays NaN.
mlir::Value toFloat8(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
                     mlir::Type element);

} // namespace meshwork::codegen
