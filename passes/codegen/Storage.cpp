// How elements are stored, and random words and what is drawn with them:
// arithmetic on scalars or vectors alike.
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/codegen/BodyEmitter.h"
#include "passes/codegen/Narrow.h"

using namespace mlir;
namespace meshwork::codegen {

Type storageOf(RankedTensorType type) {
  Type element = type.getElementType();
  if (!element.isBF16() && !transformer::isF8(element))
    return element;
  return IntegerType::get(type.getContext(), element.getIntOrFloatBitWidth());
}

Type typeLike(Type like, Type element) {
  auto vector = dyn_cast<VectorType>(like);
  return vector ? VectorType::get(vector.getShape(), element) : element;
}

Value constantOf(OpBuilder &b, Location loc, Type type, int64_t value) {
  auto element = IntegerAttr::get(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(vector, Attribute(element)));
  return arith::ConstantOp::create(b, loc, element);
}

/// `value` in f32, for each of what `like` has.
static Value floatOf(OpBuilder &b, Location loc, Type like, double value) {
  Type type = typeLike(like, b.getF32Type());
  FloatAttr element = b.getF32FloatAttr(static_cast<float>(value));
  if (auto vector = dyn_cast<VectorType>(type))
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(vector, Attribute(element)));
  return arith::ConstantOp::create(b, loc, element);
}

Value fromStorage(OpBuilder &b, Location loc, Value stored,
                  RankedTensorType type) {
  if (transformer::isNarrow(type.getElementType()))
    return fromNarrow(b, loc, stored, type.getElementType());
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
  Value raised = arith::AddIOp::create(
      b, loc, arith::AddIOp::create(b, loc, bits, number(0x7fff)), odd);
  Value rounded = arith::ShRUIOp::create(b, loc, raised, number(16));
  Value quiet = arith::OrIOp::create(b, loc, high, number(0x40));
  Value isNan =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, value, value);
  Value result = arith::SelectOp::create(b, loc, isNan, quiet, rounded);
  return arith::TruncIOp::create(b, loc, typeLike(i32, b.getI16Type()), result);
}

Value toStorage(OpBuilder &b, Location loc, Value value, RankedTensorType type,
                const CpuTarget &target) {
  if (transformer::isNarrow(type.getElementType()))
    return toNarrow(b, loc, value, type.getElementType());
  if (!type.getElementType().isBF16())
    return value;
  auto vector = dyn_cast<VectorType>(value.getType());
  if (!target.hasBf16 || !vector || vector.getNumElements() < 16)
    return roundToBf16(b, loc, value);
  Value cut =
      arith::TruncFOp::create(b, loc, typeLike(vector, b.getBF16Type()), value);
  return arith::BitcastOp::create(b, loc, typeLike(vector, b.getI16Type()),
                                  cut);
}

/// Low and high words of a * factor. Vectors of registers' length multiply even
/// and odd lanes in place, as the machine's 32 x 32 -> 64 bit product does;
/// widening all lanes would spend most of its time on moving them.
static std::pair<Value, Value> multiplyWide(OpBuilder &b, Location loc, Value a,
                                            int64_t factor) {
  auto words = dyn_cast<VectorType>(a.getType());
  if (!words || words.getNumElements() < 8) {
    auto product = arith::MulUIExtendedOp::create(
        b, loc, a,
        constantOf(b, loc, a.getType(), static_cast<int32_t>(factor)));
    return {product.getLow(), product.getHigh()};
  }
  auto pairs = VectorType::get({words.getNumElements() / 2}, b.getI64Type());
  auto number = [&](int64_t n) { return constantOf(b, loc, pairs, n); };
  auto bitcast = [&](Type type, Value value) -> Value {
    return vector::BitCastOp::create(b, loc, type, value);
  };
  constexpr int64_t low = 0xffffffff;
  Value both = bitcast(pairs, a);
  Value even = arith::MulIOp::create(
      b, loc, arith::AndIOp::create(b, loc, both, number(low)), number(factor));
  Value odd = arith::MulIOp::create(
      b, loc, arith::ShRUIOp::create(b, loc, both, number(32)), number(factor));
  Value lows = arith::OrIOp::create(
      b, loc, arith::AndIOp::create(b, loc, even, number(low)),
      arith::ShLIOp::create(b, loc, odd, number(32)));
  Value highs = arith::OrIOp::create(
      b, loc, arith::ShRUIOp::create(b, loc, even, number(32)),
      arith::AndIOp::create(b, loc, odd, number(~low)));
  return {bitcast(words, lows), bitcast(words, highs)};
}

Value philoxWord(OpBuilder &b, Location loc, std::array<Value, 4> counter,
                 std::array<Value, 2> key) {
  constexpr int64_t multipliers[2] = {0xD2511F53, 0xCD9E8D57},
                    weyl[2] = {0x9E3779B9, 0xBB67AE85};
  auto mix = [&](Value a, Value c, Value d) -> Value {
    return arith::XOrIOp::create(b, loc, arith::XOrIOp::create(b, loc, a, c),
                                 d);
  };
  for (int round = 0; round < 10; ++round) {
    if (round)
      for (int i = 0; i < 2; ++i)
        key[i] =
            arith::AddIOp::create(b, loc, key[i],
                                  constantOf(b, loc, key[i].getType(),
                                             static_cast<int32_t>(weyl[i])));
    auto [low0, high0] = multiplyWide(b, loc, counter[0], multipliers[0]);
    auto [low1, high1] = multiplyWide(b, loc, counter[2], multipliers[1]);
    counter = {mix(high1, counter[1], key[0]), low1,
               mix(high0, counter[3], key[1]), low0};
  }
  return counter[0];
}

/// Below a threshold of zero there is no word: an evaluation keeps all.
static Value maskFromWord(OpBuilder &b, Location loc, double rate, Value word,
                          Value firstSample) {
  auto threshold = static_cast<uint32_t>(rate * 4294967296.0);
  Type i32 = b.getI32Type();
  auto number = [&](double value) -> Value {
    return arith::ConstantOp::create(
        b, loc, b.getF32FloatAttr(static_cast<float>(value)));
  };
  Value isOff = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                      firstSample, constantOf(b, loc, i32, 0));
  auto choose = [&](Value off, Value on) -> Value {
    Value chosen = arith::SelectOp::create(b, loc, isOff, off, on);
    auto words = dyn_cast<VectorType>(word.getType());
    return words ? vector::BroadcastOp::create(
                       b, loc, words.clone(chosen.getType()), chosen)
                       .getResult()
                 : chosen;
  };
  Value isKept = arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::uge, word,
      choose(constantOf(b, loc, i32, 0),
             constantOf(b, loc, i32, static_cast<int32_t>(threshold))));
  return arith::SelectOp::create(b, loc, isKept,
                                 choose(number(1), number(1.0 / (1.0 - rate))),
                                 floatOf(b, loc, word.getType(), 0));
}

/// The carry out of the low half is what rounds away from zero. One into the
/// exponent of infinities is dropped; NaN passes, as its bits might wrap.
static Value roundByWord(OpBuilder &b, Location loc, Value value, Value word) {
  Type i32 = word.getType();
  auto number = [&](int64_t n) {
    return constantOf(b, loc, i32, static_cast<int32_t>(n));
  };
  constexpr int64_t low = 0xffff, high = 0xffff0000, exponent = 0x7f800000;
  Value bits = arith::BitcastOp::create(b, loc, i32, value);
  Value raised = arith::AddIOp::create(
      b, loc, bits, arith::AndIOp::create(b, loc, word, number(low)));
  Value isPast = arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::eq,
      arith::AndIOp::create(b, loc, raised, number(exponent)),
      number(exponent));
  Value cut = arith::AndIOp::create(
      b, loc, arith::SelectOp::create(b, loc, isPast, bits, raised),
      number(high));
  Value isNan =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, value, value);
  return arith::SelectOp::create(
      b, loc, isNan, value,
      arith::BitcastOp::create(b, loc, value.getType(), cut));
}

Value fromWord(OpBuilder &b, Location loc, transformer::DrawOpInterface draw,
               Value word, Value value) {
  if (auto mask = dyn_cast<transformer::DropoutMaskOp>(draw.getOperation()))
    return maskFromWord(b, loc, mask.getRate().convertToDouble(), word, value);
  return roundByWord(b, loc, value, word);
}

} // namespace meshwork::codegen
