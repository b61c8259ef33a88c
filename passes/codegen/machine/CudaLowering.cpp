// Kernels to NVVM: functions of math become arithmetic first, so that none is
// left to libdevice; the rest is one conversion.
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "passes/codegen/machine/CudaCodeSteps.h"

using namespace mlir;
namespace meshwork::target {
namespace {

/// What the NVPTX back end turns into instructions by itself; exp2 is one where
/// it may approximate.
bool hasInstruction(Operation *op) {
  if (auto power = dyn_cast<math::Exp2Op>(op))
    return arith::bitEnumContainsAll(power.getFastmath(),
                                     arith::FastMathFlags::afn);
  return isa<math::SqrtOp, math::FmaOp, math::AbsFOp, math::AbsIOp,
             math::FloorOp, math::CeilOp, math::TruncOp, math::RoundEvenOp,
             math::CopySignOp>(op);
}

LogicalResult approximateMath(gpu::GPUModuleOp kernels) {
  RewritePatternSet patterns(kernels.getContext());
  populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
    return name == math::LogOp::getOperationName() ||
           name == math::TanhOp::getOperationName() ||
           name == math::ErfOp::getOperationName() ||
           name == math::Log1pOp::getOperationName() ||
           name == math::ExpM1Op::getOperationName() ||
           name == math::SinOp::getOperationName() ||
           name == math::CosOp::getOperationName();
  });
  populateCudaMathExpansion(patterns);
  FrozenRewritePatternSet frozen(std::move(patterns));
  for (int round = 0; round < 2;
       ++round) // what a pattern made may need another
    walkAndApplyPatterns(kernels, frozen);
  WalkResult result = kernels.walk([](Operation *op) {
    if (!isa<math::MathDialect>(op->getDialect()) || hasInstruction(op))
      return WalkResult::advance();
    op->emitError()
        << "'" << op->getName()
        << "' has no GPU code, expected exp, expm1, log, log1p, tanh, erf, "
           "sin, cos, "
        << "sqrt, rsqrt, absf, floor, ceil, trunc, roundeven, copysign or fma";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// What is left of math, and maxima, to LLVM's intrinsics, alone: the patterns
/// of GPUs would call libdevice for them.
LogicalResult lowerMath(gpu::GPUModuleOp kernels,
                        LLVMTypeConverter &converter) {
  RewritePatternSet patterns(kernels.getContext());
  populateMathToLLVMConversionPatterns(converter, patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  ConversionTarget target(*kernels.getContext());
  target.addLegalDialect<LLVM::LLVMDialect, arith::ArithDialect>();
  target.addIllegalDialect<math::MathDialect>();
  target.addIllegalOp<arith::MaxNumFOp, arith::MaximumFOp, arith::MinNumFOp,
                      arith::MinimumFOp>();
  return applyPartialConversion(kernels, target, std::move(patterns));
}
} // namespace

LogicalResult lowerToNvvm(gpu::GPUModuleOp kernels) {
  if (failed(approximateMath(kernels)))
    return failure();
  approximateQuotients(kernels);
  MLIRContext *context = kernels.getContext();
  LowerToLLVMOptions options(context);
  options.useBarePtrCallConv = true;
  LLVMTypeConverter converter(context, options);
  if (failed(lowerMath(kernels, converter)))
    return failure();
  configureGpuToNVVMTypeConverter(converter);
  RewritePatternSet patterns(context);
  populateSCFToControlFlowConversionPatterns(patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  populateGpuToNVVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  // Not upstream's legality: it forbids LLVM's intrinsics in favour of
  // libdevice.
  target.addLegalDialect<NVVM::NVVMDialect>();
  target.addIllegalDialect<gpu::GPUDialect>();
  target.addLegalOp<gpu::GPUModuleOp>();
  return applyFullConversion(kernels, target, std::move(patterns));
}

} // namespace meshwork::target
