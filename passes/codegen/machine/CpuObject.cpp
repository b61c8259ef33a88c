#include "passes/codegen/machine/CpuObject.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "passes/codegen/machine/CpuObjectSteps.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

using namespace mlir;
namespace meshwork::codegen {

FailureOr<std::vector<char>> compileToSharedObject(ModuleOp kernels,
                                                   const CpuTarget &target) {
  mergeEqualFunctions(kernels);
  if (failed(lowerToLlvmDialect(kernels)))
    return failure();
  registerBuiltinDialectTranslation(*kernels.getContext());
  registerLLVMDialectTranslation(*kernels.getContext());
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(
      kernels, context, "kernels", /*disableVerification=*/true);
  if (!module)
    return kernels.emitError() << "kernels do not translate to LLVM IR";
  std::string error;
  FailureOr<llvm::SmallVector<char, 0>> object =
      emitObject(*module, target, error);
  if (failed(object))
    return kernels.emitError()
           << "no object code for " << target.arch << ": " << error;
  FailureOr<std::vector<char>> shared = linkSharedObject(*object, error);
  if (failed(shared))
    return kernels.emitError() << "kernels do not link: " << error;
  return shared;
}

} // namespace meshwork::codegen
