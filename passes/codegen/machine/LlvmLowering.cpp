#include "passes/codegen/machine/LlvmLowering.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;
namespace meshwork::codegen {

template <typename... Ops> static bool isNameOf(StringRef name) {
  return ((name == Ops::getOperationName()) || ...);
}

static bool isLeft(Operation *op, const MathOfMachine &machine) {
  return isa<math::MathDialect>(op->getDialect()) &&
         !isa<math::SqrtOp, math::FmaOp, math::AbsFOp, math::AbsIOp,
              math::FloorOp, math::CeilOp, math::TruncOp, math::RoundEvenOp,
              math::CopySignOp>(op) &&
         !machine.hasInstruction(op);
}

/// One walk does not visit what a pattern created (the polynomial of one
/// function may use another), hence a second.
LogicalResult approximateMath(Operation *kernels,
                              const MathOfMachine &machine) {
  RewritePatternSet patterns(kernels->getContext());
  populateMathPolynomialApproximationPatterns(
      patterns,
      isNameOf<math::ExpOp, math::LogOp, math::TanhOp, math::ErfOp,
               math::Log1pOp, math::ExpM1Op, math::SinOp, math::CosOp>);
  machine.populateExpansion(patterns);
  FrozenRewritePatternSet frozen(std::move(patterns));
  for (int round = 0; round < 2; ++round)
    walkAndApplyPatterns(kernels, frozen);
  WalkResult result = kernels->walk([&](Operation *op) {
    if (!isLeft(op, machine))
      return WalkResult::advance();
    op->emitError()
        << "'" << op->getName() << "' has no " << machine.name
        << " code, expected exp, expm1, log, log1p, tanh, erf, sin, cos, sqrt, "
           "rsqrt, absf, floor, ceil, trunc, roundeven, copysign or fma";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

void populateLowering(const LLVMTypeConverter &converter,
                      RewritePatternSet &patterns) {
  populateSCFToControlFlowConversionPatterns(patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
}

} // namespace meshwork::codegen
