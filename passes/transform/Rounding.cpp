#include "passes/transform/Rounding.h"

using namespace mlir;
namespace meshwork::transform {
using namespace transformer;

Value scaledTo8(OpBuilder &builder, Value value, Value scale, Type format,
                Infinity infinity) {
  return buildMap(builder, value.getLoc(),
                  withElement(tensorType(value), format), {value, scale},
                  [&](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
                    Value scaled = arith::MulFOp::create(b, x[0], x[1]);
                    if (infinity == Infinity::isInScale)
                      return scaled;
                    return arith::AddFOp::create(
                        b, scaled, arith::SubFOp::create(b, x[0], x[0]));
                  });
}

Value scaledBack(OpBuilder &builder, Value of8, Value inverse, Type element) {
  return buildMap(builder, of8.getLoc(), withElement(tensorType(of8), element),
                  {of8, inverse},
                  [](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
                    return arith::MulFOp::create(b, x[0], x[1]);
                  });
}

Value largestMagnitude(OpBuilder &builder, Value value, DimsAttr over,
                       RankedTensorType order) {
  Value magnitudes =
      buildMap(builder, value.getLoc(), order ? order : value.getType(), value,
               [](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
                 return math::AbsFOp::create(b, x[0]);
               });
  return ReduceOp::create(builder, value.getLoc(), Reduction::max, magnitudes,
                          over ? over : dimsOf(value));
}

SmallVector<Value> factorsTo(ImplicitLocOpBuilder &b, Value largest,
                             float end) {
  constexpr float leastMagnitude = 0x1p-100f;
  auto number = [&](float value) -> Value {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
  };
  Value isZero = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, largest,
                                       number(leastMagnitude));
  Value factor = arith::DivFOp::create(b, number(end), largest);
  return {arith::SelectOp::create(b, isZero, number(0), factor),
          arith::DivFOp::create(b, largest, number(end))};
}

} // namespace meshwork::transform
