// Elements of 8 bits: s eeee mmm (e4m3, without infinities, NaN is 1111 111)
// and s eeeee mm (e5m2, as f16 cut short). Arithmetic on scalars or vectors
// alike. Source of the formats: Micikevicius et al., arXiv 2209.05433.
#include "passes/codegen/BodyEmitter.h"
#include "passes/codegen/Narrow.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {

/// One format. Shifting its bits left by `shift` puts exponent and mantissa
/// where an f32 has them, 127 - bias powers of two too small.
struct Format {
  int shift, bias, leastExponent, mantissaBits;
  float largest;
  int64_t firstSpecial, nan; // without sign
};

Format formatOf(Type element) {
  if (isa<Float8E5M2Type>(element))
    return {21, 15, -14, 2, 57344.0f, 0x7c, 0x7f};
  return {20, 7, -6, 3, 448.0f, 0x7f, 0x7f};
}

/// Arithmetic on values of one shape.
struct Arithmetic {
  OpBuilder &b;
  Location loc;
  Type like;

  Type i32() const { return typeLike(like, b.getI32Type()); }
  Type f32() const { return typeLike(like, b.getF32Type()); }
  Value number(int64_t n) const { return constantOf(b, loc, i32(), n); }
  Value real(float value) const {
    return bitsAsFloat(number(llvm::bit_cast<int32_t>(value)));
  }
  Value bitsAsFloat(Value bits) const {
    return arith::BitcastOp::create(b, loc, f32(), bits);
  }
  Value bitsOf(Value value) const {
    return arith::BitcastOp::create(b, loc, i32(), value);
  }
  template <typename Op> Value make(Value x, Value y) const {
    return Op::create(b, loc, x, y);
  }
  Value choose(arith::CmpIPredicate predicate, Value x, int64_t limit,
               Value then, Value otherwise) const {
    Value holds = arith::CmpIOp::create(b, loc, predicate, x, number(limit));
    return arith::SelectOp::create(b, loc, holds, then, otherwise);
  }
};
} // namespace

Value fromFloat8(OpBuilder &b, Location loc, Value stored, Type element) {
  Format format = formatOf(element);
  Arithmetic a{b, loc, stored.getType()};
  Value byte = arith::ExtUIOp::create(b, loc, a.i32(), stored);
  Value magnitude = a.make<arith::AndIOp>(byte, a.number(0x7f));
  Value sign = a.make<arith::ShLIOp>(
      a.make<arith::AndIOp>(byte, a.number(0x80)), a.number(24));
  // Small exponents become an f32's subnormal ones, which a product with a
  // power of two makes normal; NaN and infinities get an f32's exponent.
  Value bits = a.make<arith::ShLIOp>(magnitude, a.number(format.shift));
  Value special = a.make<arith::OrIOp>(bits, a.number(0x7f800000));
  bits = a.choose(arith::CmpIPredicate::sge, magnitude, format.firstSpecial,
                  special, bits);
  Value value = a.make<arith::MulFOp>(
      a.bitsAsFloat(bits), a.real(std::ldexp(1.0f, 127 - format.bias)));
  return a.bitsAsFloat(a.make<arith::OrIOp>(a.bitsOf(value), sign));
}

Value toFloat8(OpBuilder &b, Location loc, Value value, Type element) {
  Format format = formatOf(element);
  Arithmetic a{b, loc, value.getType()};
  Value all = a.bitsOf(value);
  Value sign = a.make<arith::ShRUIOp>(
      a.make<arith::AndIOp>(all, a.number(static_cast<int32_t>(0x80000000))),
      a.number(24));
  Value bits = a.make<arith::AndIOp>(all, a.number(0x7fffffff));
  Value held = a.make<arith::MinUIOp>(
      bits, a.number(llvm::bit_cast<int32_t>(format.largest)));
  // Normal numbers: half of the last place less one is added, and one more
  // where that place is odd; what carries goes into the exponent.
  Value odd = a.make<arith::AndIOp>(
      a.make<arith::ShRUIOp>(held, a.number(format.shift)), a.number(1));
  Value raised = a.make<arith::AddIOp>(a.make<arith::AddIOp>(held, odd),
                                       a.number((1 << (format.shift - 1)) - 1));
  Value normal = a.make<arith::SubIOp>(
      a.make<arith::ShRUIOp>(raised, a.number(format.shift)),
      a.number((127 - format.bias) << format.mantissaBits));
  // Others: adding 2^23 units leaves their number in the low bits, rounded.
  float magic =
      std::ldexp(1.0f, 23 + format.leastExponent - format.mantissaBits);
  Value shifted = a.make<arith::AddFOp>(a.bitsAsFloat(held), a.real(magic));
  Value small = a.make<arith::SubIOp>(a.bitsOf(shifted),
                                      a.number(llvm::bit_cast<int32_t>(magic)));
  float least = std::ldexp(1.0f, format.leastExponent);
  Value result = a.choose(arith::CmpIPredicate::slt, held,
                          llvm::bit_cast<int32_t>(least), small, normal);
  result = a.choose(arith::CmpIPredicate::sgt, bits, 0x7f800000,
                    a.number(format.nan), result);
  result = a.make<arith::OrIOp>(result, sign);
  return arith::TruncIOp::create(b, loc, typeLike(a.i32(), b.getI8Type()),
                                 result);
}

} // namespace meshwork::codegen
