// Elements of i8: whole numbers from -127 to 127, so that each has its
// negative.
#include "passes/codegen/BodyEmitter.h"
#include "passes/codegen/Narrow.h"

using namespace mlir;
namespace meshwork::codegen {

static Value numberLike(OpBuilder &b, Location loc, Type type, float value) {
  Value bits = constantOf(b, loc, typeLike(type, b.getI32Type()),
                          llvm::bit_cast<int32_t>(value));
  return arith::BitcastOp::create(b, loc, type, bits);
}

Value fromInt8(OpBuilder &b, Location loc, Value stored) {
  Value wide = arith::ExtSIOp::create(
      b, loc, typeLike(stored.getType(), b.getI32Type()), stored);
  return arith::SIToFPOp::create(
      b, loc, typeLike(stored.getType(), b.getF32Type()), wide);
}

/// Added to 1.5 * 2^23, whose last place is 1, it is rounded there; the sum's
/// low bits are then the number.
Value toInt8(OpBuilder &b, Location loc, Value value) {
  Type type = value.getType();
  auto number = [&](float x) { return numberLike(b, loc, type, x); };
  Value held = arith::MinNumFOp::create(
      b, loc, arith::MaxNumFOp::create(b, loc, value, number(-127)),
      number(127));
  Value shifted = arith::AddFOp::create(b, loc, held, number(12582912.0f));
  Value bits =
      arith::BitcastOp::create(b, loc, typeLike(type, b.getI32Type()), shifted);
  return arith::TruncIOp::create(b, loc, typeLike(type, b.getI8Type()), bits);
}

} // namespace meshwork::codegen
