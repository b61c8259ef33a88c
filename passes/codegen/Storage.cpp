// How elements are stored, and the random words of dropout: arithmetic on
// scalars or vectors alike.
#include "mlir/IR/TypeUtilities.h"
#include "passes/codegen/BodyEmitter.h"

using namespace mlir;
namespace meshwork::codegen {

Type storageOf(RankedTensorType type) {
  Type element = type.getElementType();
  return element.isBF16() ? IntegerType::get(type.getContext(), 16) : element;
}

Type typeLike(Type like, Type element) {
  auto vector = dyn_cast<VectorType>(like);
  return vector ? VectorType::get(vector.getShape(), element) : element;
}

Value constantOf(OpBuilder &b, Location loc, Type type, int64_t value) {
  auto element = IntegerAttr::get(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(vector, Attribute(element)));
  return arith::ConstantOp::create(b, loc, element);
}

Value fromStorage(OpBuilder &b, Location loc, Value stored, RankedTensorType type) {
  if (!type.getElementType().isBF16())
    return stored;
  Type i32 = typeLike(stored.getType(), b.getI32Type());
  Value wide = arith::ExtUIOp::create(b, loc, i32, stored);
  Value bits = arith::ShLIOp::create(b, loc, wide, constantOf(b, loc, i32, 16));
  return arith::BitcastOp::create(b, loc, typeLike(i32, b.getF32Type()), bits);
}

/// Adds just under half of bf16's last place, and the rest when that is odd,
/// then cuts; NaN stays NaN.
static Value roundToBf16(OpBuilder &b, Location loc, Value value) {
  Type i32 = typeLike(value.getType(), b.getI32Type());
  auto number = [&](int64_t n) { return constantOf(b, loc, i32, n); };
  Value bits = arith::BitcastOp::create(b, loc, i32, value);
  Value high = arith::ShRUIOp::create(b, loc, bits, number(16));
  Value odd = arith::AndIOp::create(b, loc, high, number(1));
  Value raised = arith::AddIOp::create(b, loc, arith::AddIOp::create(b, loc, bits, number(0x7fff)), odd);
  Value rounded = arith::ShRUIOp::create(b, loc, raised, number(16));
  Value quiet = arith::OrIOp::create(b, loc, high, number(0x40));
  Value isNan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, value, value);
  Value result = arith::SelectOp::create(b, loc, isNan, quiet, rounded);
  return arith::TruncIOp::create(b, loc, typeLike(i32, b.getI16Type()), result);
}

Value toStorage(OpBuilder &b, Location loc, Value value, RankedTensorType type, const CpuTarget &target) {
  if (!type.getElementType().isBF16())
    return value;
  auto vector = dyn_cast<VectorType>(value.getType());
  if (!target.hasBf16 || !vector || vector.getNumElements() < 16)
    return roundToBf16(b, loc, value);
  Value cut = arith::TruncFOp::create(b, loc, typeLike(vector, b.getBF16Type()), value);
  return arith::BitcastOp::create(b, loc, typeLike(vector, b.getI16Type()), cut);
}

Value philoxWord(OpBuilder &b, Location loc, std::array<Value, 4> counter, std::array<Value, 2> key) {
  constexpr int64_t multipliers[2] = {0xD2511F53, 0xCD9E8D57}, weyl[2] = {0x9E3779B9, 0xBB67AE85};
  Type type = counter[0].getType();
  auto number = [&](int64_t n) { return constantOf(b, loc, type, static_cast<int32_t>(n)); };
  auto mix = [&](Value a, Value c, Value d) -> Value {
    return arith::XOrIOp::create(b, loc, arith::XOrIOp::create(b, loc, a, c), d);
  };
  for (int round = 0; round < 10; ++round) {
    if (round)
      for (int i = 0; i < 2; ++i)
        key[i] = arith::AddIOp::create(b, loc, key[i], constantOf(b, loc, key[i].getType(), static_cast<int32_t>(weyl[i])));
    auto first = arith::MulUIExtendedOp::create(b, loc, counter[0], number(multipliers[0]));
    auto second = arith::MulUIExtendedOp::create(b, loc, counter[2], number(multipliers[1]));
    counter = {mix(second.getHigh(), counter[1], key[0]), second.getLow(), mix(first.getHigh(), counter[3], key[1]), first.getLow()};
  }
  return counter[0];
}

} // namespace meshwork::codegen
