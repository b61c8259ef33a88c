// Elements of 8 bits (`isNarrow`): f8E4M3FN, f8E5M2 and whole numbers, as i8.
#pragma once

#include "dialects/transformer/Transformer.h"

namespace meshwork::codegen {

/// The f32 that `stored` stands for.
mlir::Value fromNarrow(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value stored, mlir::Type element);
/// To nearest, ties to even. What is beyond the largest number, infinities too,
/// becomes that number. NaN stays NaN; as a whole number it is -127.
mlir::Value toNarrow(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
                     mlir::Type element);

mlir::Value fromFloat8(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value stored, mlir::Type element);
mlir::Value toFloat8(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
                     mlir::Type element);
mlir::Value fromInt8(mlir::OpBuilder &b, mlir::Location loc,
                     mlir::Value stored);
mlir::Value toInt8(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value);

} // namespace meshwork::codegen
