// Kernels to NVVM.
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/DialectConversion.h"
#include "passes/codegen/machine/CudaCodeSteps.h"
#include "passes/codegen/machine/LlvmLowering.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {

/// exp2 is an instruction where it may approximate.
bool hasInstruction(Operation *op) {
  auto power = dyn_cast<math::Exp2Op>(op);
  return power && arith::bitEnumContainsAll(power.getFastmath(),
                                            arith::FastMathFlags::afn);
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
  if (failed(approximateMath(
          kernels, {"GPU", populateCudaMathExpansion, hasInstruction})))
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
  populateLowering(converter, patterns);
  populateGpuToNVVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  // Not upstream's legality: it forbids LLVM's intrinsics in favour of
  // libdevice.
  target.addLegalDialect<NVVM::NVVMDialect>();
  target.addIllegalDialect<gpu::GPUDialect>();
  target.addLegalOp<gpu::GPUModuleOp>();
  return applyFullConversion(kernels, target, std::move(patterns));
}

} // namespace meshwork::codegen
