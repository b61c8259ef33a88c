// exp by the machine's ex2.approx, whose relative error is 2^-22 (PTX ISA),
// with a correction for the rounding of its argument.
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/codegen/machine/CudaCodeSteps.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {

/// Of each element of a vector, or of the one there is.
Value forEach(ImplicitLocOpBuilder &b, ValueRange operands,
              llvm::function_ref<Value(ValueRange)> make) {
  auto vector = dyn_cast<VectorType>(operands.front().getType());
  if (!vector)
    return make(operands);
  Value all = LLVM::UndefOp::create(b, vector);
  for (int64_t i = 0; i < vector.getNumElements(); ++i) {
    SmallVector<Value> elements;
    for (Value operand : operands)
      elements.push_back(vector::ExtractOp::create(b, operand, i));
    all = vector::InsertOp::create(b, make(elements), all, i);
  }
  return all;
}

Value intrinsic(ImplicitLocOpBuilder &b, StringRef name, ValueRange operands) {
  return forEach(b, operands, [&](ValueRange elements) {
    return LLVM::CallIntrinsicOp::create(b, b.getF32Type(),
                                         b.getStringAttr(name), elements)
        .getResults();
  });
}

/// e^x = 2^t (1 + r). Here t is x / ln 2 less 2^-16, rounded: it is off by less
/// than 2^-17. The rest r is x - t ln 2, computed in two steps. It is above 0
/// and below 2^-16, so 1 + r is e^r but for 2^-33. Saturation holds r between 0
/// and 1, also where x is -inf and r would be NaN, and x is held below 89: so
/// where 2^t is 0, inf or NaN, its product with 1 + r is, too. An exp that may
/// approximate (afn) is 2^t alone, with t = x / ln 2.
struct ExpandExp : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto number = [&](float value) -> Value {
      TypedAttr attribute = b.getF32FloatAttr(value);
      if (auto vector = dyn_cast<VectorType>(type))
        attribute =
            DenseElementsAttr::get(vector, ArrayRef<Attribute>(attribute));
      return arith::ConstantOp::create(b, attribute);
    };
    auto power = [&](Value t) {
      return intrinsic(b, "llvm.nvvm.ex2.approx.ftz.f32", t);
    };
    Value x = op.getOperand(), perLn2 = number(1.44269502f);
    if (arith::bitEnumContainsAll(op.getFastmath(),
                                  arith::FastMathFlags::afn)) {
      rewriter.replaceOp(op, power(arith::MulFOp::create(b, x, perLn2)));
      return success();
    }
    Value isBeyond = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x,
                                           number(89)); // not of a NaN
    x = arith::SelectOp::create(b, isBeyond, number(89), x);
    Value t = math::FmaOp::create(b, x, perLn2, number(-0x1p-16f));
    Value r = math::FmaOp::create(b, t, number(-0.693147182f), x);
    r = intrinsic(b, "llvm.nvvm.fma.rn.sat.f",
                  {t, number(1.90465421e-9f), r}); // the rest of ln 2
    Value e = power(t);
    rewriter.replaceOpWithNewOp<math::FmaOp>(op, e, r, e);
    return success();
  }
};

/// See approximateQuotients.
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

/// Subnormal numbers count as zero: to scale them takes five instructions more.
void approximateQuotients(gpu::GPUModuleOp kernels) {
  kernels.walk([](arith::DivFOp op) {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return;
    bool isInverse = matchPattern(op.getLhs(), m_OneFloat());
    if (isInverse && op.getRhs().getDefiningOp<math::SqrtOp>()) {
      // The back end makes one instruction of both, rsqrt.approx.
      op.setFastmath(op.getFastmath() | arith::FastMathFlags::afn);
      return;
    }
    OpBuilder builder(op);
    ImplicitLocOpBuilder b(op.getLoc(), builder);
    Value quotient =
        isInverse ? intrinsic(b, "llvm.nvvm.rcp.approx.ftz.f", op.getRhs())
                  : intrinsic(b, "llvm.nvvm.div.approx.ftz.f",
                              {op.getLhs(), op.getRhs()});
    op.replaceAllUsesWith(quotient);
    op.erase();
  });
}

void populateCudaMathExpansion(RewritePatternSet &patterns) {
  patterns.add<ExpandExp, ExpandRsqrt>(patterns.getContext(),
                                       PatternBenefit(2));
}

} // namespace meshwork::codegen
