// exp in 14 instructions. The polynomial upstream guards each special value by
// itself and takes twice as many, which shows in softmax and SiLU; the other
// functions are as good there as they need to be.
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/codegen/machine/CpuObjectSteps.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {

struct ExpansionBuilder {
  ImplicitLocOpBuilder b;
  Type type;

  Value constant(TypedAttr value) {
    if (auto vector = dyn_cast<VectorType>(type))
      value = DenseElementsAttr::get(vector.clone(value.getType()),
                                     ArrayRef<Attribute>(value));
    return arith::ConstantOp::create(b, value);
  }
  Value number(float value) { return constant(b.getF32FloatAttr(value)); }
  Value fma(Value x, Value y, Value z) {
    return math::FmaOp::create(b, x, y, z);
  }
  /// `bound` where `x` is beyond it.
  Value limit(arith::CmpFPredicate beyond, Value x, float bound) {
    Value isBeyond = arith::CmpFOp::create(b, beyond, x, number(bound));
    return arith::SelectOp::create(b, isBeyond, number(bound), x);
  }
  Type integers() {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? Type(vector.clone(b.getI32Type())) : b.getI32Type();
  }
};

/// e^x = 2^n e^r with n = round(x / ln 2), |r| <= ln(2) / 2.
/// The low bits of x / ln 2 + 1.5 * 2^23 + 127 are n + 127, the exponent of
/// 2^n. Clamps n between -127, where that factor is 0, and 127. Beyond, r
/// grows: e^r, with an error of 1e-5 up to r = ln 2, brings the rest, and
/// overflows when the result does. A NaN passes both comparisons.
/// e^r = 1 + r + r^2 q(r), q of degree 4 by Remez' exchange for the least
/// relative error, 2.5e-8.
struct ExpandExp : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    ExpansionBuilder e{ImplicitLocOpBuilder(op.getLoc(), rewriter),
                       op.getType()};
    Value x = e.limit(arith::CmpFPredicate::OLT, op.getOperand(), -88.0f);
    constexpr float magicNumber = 12583039.0f;
    Value magic = e.number(magicNumber);
    Value shifted =
        e.limit(arith::CmpFPredicate::OGT,
                e.fma(x, e.number(1.44269504f), magic), magicNumber + 127);
    Value n = arith::SubFOp::create(e.b, shifted, magic);
    Value r = e.fma(n, e.number(-0x1.62e430p-1f), x); // ln 2 in two parts
    r = e.fma(n, e.number(1.904654323e-9f), r);
    Value p = e.number(0.00133447757f);
    for (float coefficient : {0.00835923851f, 0.0416737050f, 0.166666001f,
                              0.499999851f, 1.0f, 1.0f})
      p = e.fma(p, r, e.number(coefficient));
    Value bits = arith::BitcastOp::create(e.b, e.integers(), shifted);
    Value exponent =
        arith::ShLIOp::create(e.b, bits, e.constant(e.b.getI32IntegerAttr(23)));
    Value power = arith::BitcastOp::create(e.b, e.type, exponent);
    rewriter.replaceOpWithNewOp<arith::MulFOp>(op, p, power);
    return success();
  }
};
} // namespace

void populateMathExpansion(RewritePatternSet &patterns) {
  patterns.add<ExpandExp>(patterns.getContext(), PatternBenefit(2));
}

} // namespace meshwork::codegen
