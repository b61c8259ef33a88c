// Kernels to the LLVM dialect: functions of math become polynomials first, so
// that none is left to a library; the rest is one conversion.
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "passes/codegen/machine/CpuObjectSteps.h"

using namespace mlir;
namespace meshwork::target {
namespace {

/// What the x86 backend turns into instructions by itself.
bool hasInstruction(Operation *op) {
  return isa<math::SqrtOp, math::RsqrtOp, math::FmaOp, math::AbsFOp,
             math::AbsIOp, math::FloorOp, math::CeilOp, math::TruncOp,
             math::RoundEvenOp, math::CopySignOp>(op);
}

/// One walk does not visit what a pattern created (the polynomial of one
/// function may use another), hence a second.
LogicalResult approximateMath(ModuleOp kernels) {
  RewritePatternSet patterns(kernels.getContext());
  populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
    return name == math::ExpOp::getOperationName() ||
           name == math::LogOp::getOperationName() ||
           name == math::TanhOp::getOperationName() ||
           name == math::ErfOp::getOperationName() ||
           name == math::Log1pOp::getOperationName() ||
           name == math::ExpM1Op::getOperationName() ||
           name == math::SinOp::getOperationName() ||
           name == math::CosOp::getOperationName();
  });
  populateMathExpansion(patterns);
  FrozenRewritePatternSet frozen(std::move(patterns));
  for (int round = 0; round < 2; ++round)
    walkAndApplyPatterns(kernels, frozen);
  WalkResult result = kernels.walk([](Operation *op) {
    if (!isa<math::MathDialect>(op->getDialect()) || hasInstruction(op))
      return WalkResult::advance();
    op->emitError()
        << "'" << op->getName()
        << "' has no CPU code, expected exp, expm1, log, log1p, tanh, erf, "
           "sin, cos, "
        << "sqrt, rsqrt, absf, floor, ceil, trunc, roundeven, copysign or fma";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}
} // namespace

LogicalResult lowerToLlvmDialect(ModuleOp kernels) {
  if (failed(approximateMath(kernels)))
    return failure();
  MLIRContext *context = kernels.getContext();
  LLVMTypeConverter converter(context);
  RewritePatternSet patterns(context);
  populateSCFToControlFlowConversionPatterns(patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  return applyFullConversion(kernels, target, std::move(patterns));
}

} // namespace meshwork::target
