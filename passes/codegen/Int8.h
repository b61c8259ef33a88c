// Elements of i8: whole numbers from -127 to 127, so that each has its
// negative.
#pragma once

#include "dialects/transformer/Transformer.h"

namespace meshwork::codegen {

/// The f32 of the same value.
mlir::Value fromInt8(mlir::OpBuilder &b, mlir::Location loc,
                     mlir::Value stored);
/// To nearest, ties to even; what is beyond the range to its end, NaN to -127.
mlir::Value toInt8(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value);

} // namespace meshwork::codegen
