// Kernels to the LLVM dialect.
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/DialectConversion.h"
#include "passes/codegen/machine/CpuObjectSteps.h"
#include "passes/codegen/machine/LlvmLowering.h"

using namespace mlir;
namespace meshwork::codegen {

LogicalResult lowerToLlvmDialect(ModuleOp kernels) {
  if (failed(approximateMath(
          kernels, {"CPU", populateMathExpansion,
                    [](Operation *op) { return isa<math::RsqrtOp>(op); }})))
    return failure();
  MLIRContext *context = kernels.getContext();
  LLVMTypeConverter converter(context);
  RewritePatternSet patterns(context);
  populateLowering(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  return applyFullConversion(kernels, target, std::move(patterns));
}

} // namespace meshwork::codegen
