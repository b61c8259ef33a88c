// exp by the machine's ex2.approx, whose relative error is 2^-22 (PTX ISA). Its
// argument is x / ln 2 less the nearest integer, so that no error grows with x.
#include "lib/MachineCode/CudaCodeSteps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
namespace meshwork::target {
namespace {

/// e^x = 2^n 2^f with n = round(x / ln 2), |f| <= 1/2. As in CpuMath.cpp, the
/// low bits of x / ln 2 + 1.5 * 2^23 + 127 are the exponent of 2^n, n is held
/// between -127 and 127, and a NaN passes both comparisons.
struct ExpandExp : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto constant = [&](TypedAttr value) -> Value {
      if (auto vector = dyn_cast<VectorType>(type))
        value = DenseElementsAttr::get(vector.clone(value.getType()),
                                       ArrayRef<Attribute>(value));
      return arith::ConstantOp::create(b, value);
    };
    auto number = [&](float value) {
      return constant(b.getF32FloatAttr(value));
    };
    auto limit = [&](arith::CmpFPredicate beyond, Value x,
                     float bound) -> Value {
      Value isBeyond = arith::CmpFOp::create(b, beyond, x, number(bound));
      return arith::SelectOp::create(b, isBeyond, number(bound), x);
    };
    Value x = limit(arith::CmpFPredicate::OLT, op.getOperand(), -88.0f);
    constexpr float magicNumber = 12583039.0f;
    Value magic = number(magicNumber), perLog2 = number(1.44269502f);
    Value shifted =
        limit(arith::CmpFPredicate::OGT,
              math::FmaOp::create(b, x, perLog2, magic), magicNumber + 127);
    Value n = arith::SubFOp::create(b, shifted, magic);
    Value f = math::FmaOp::create(b, x, perLog2, arith::NegFOp::create(b, n));
    f = math::FmaOp::create(b, x, number(1.92596299e-8f),
                            f); // the rest of 1 / ln 2
    Value power = math::Exp2Op::create(b, f, arith::FastMathFlags::afn);
    auto vector = dyn_cast<VectorType>(type);
    Type integers =
        vector ? Type(vector.clone(b.getI32Type())) : b.getI32Type();
    Value exponent =
        arith::ShLIOp::create(b, arith::BitcastOp::create(b, integers, shifted),
                              constant(b.getI32IntegerAttr(23)));
    rewriter.replaceOpWithNewOp<arith::MulFOp>(
        op, power, arith::BitcastOp::create(b, type, exponent));
    return success();
  }
};

/// The back end makes one instruction of both, rsqrt.approx, where it may.
struct ExpandRsqrt : OpRewritePattern<math::RsqrtOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::RsqrtOp op,
                                PatternRewriter &rewriter) const override {
    TypedAttr one = rewriter.getF32FloatAttr(1);
    if (auto vector = dyn_cast<VectorType>(op.getType()))
      one = DenseElementsAttr::get(vector, ArrayRef<Attribute>(one));
    Value root = math::SqrtOp::create(rewriter, op.getLoc(), op.getOperand(),
                                      op.getFastmath());
    rewriter.replaceOpWithNewOp<arith::DivFOp>(
        op, arith::ConstantOp::create(rewriter, op.getLoc(), one), root,
        op.getFastmath());
    return success();
  }
};
} // namespace

void populateCudaMathExpansion(RewritePatternSet &patterns) {
  patterns.add<ExpandExp, ExpandRsqrt>(patterns.getContext(),
                                       PatternBenefit(2));
}

} // namespace meshwork::target
