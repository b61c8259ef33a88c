// LLVM IR to PTX. ptxas schedules and allocates registers.
#include "lib/Target/CudaCodeSteps.h"
#include "lib/Target/LlvmEmit.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

using namespace mlir;
namespace meshwork::target {
namespace {
std::unique_ptr<llvm::TargetMachine> makeMachine(const CudaTarget &target, std::string &error) {
  static const bool initialized = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)initialized;
  llvm::Triple triple("nvptx64-nvidia-cuda");
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(
      backend->createTargetMachine(triple, target.arch, target.ptxFeature, llvm::TargetOptions(), std::nullopt));
}


FailureOr<std::string> emitPtx(llvm::Module &module, const CudaTarget &target, std::string &error) {
  std::unique_ptr<llvm::TargetMachine> machine = makeMachine(target, error);
  if (!machine)
    return failure();
  FailureOr<llvm::SmallVector<char, 0>> text = optimizeAndEmit(module, *machine, llvm::CodeGenFileType::AssemblyFile);
  if (failed(text)) {
    error = "LLVM cannot write PTX";
    return failure();
  }
  return std::string(text->begin(), text->end());
}
} // namespace

FailureOr<std::string> compileToPtx(gpu::GPUModuleOp kernels, const CudaTarget &target) {
  if (failed(lowerToNvvm(kernels)))
    return failure();
  MLIRContext &mlirContext = *kernels.getContext();
  registerBuiltinDialectTranslation(mlirContext);
  registerGPUDialectTranslation(mlirContext);
  registerLLVMDialectTranslation(mlirContext);
  registerNVVMDialectTranslation(mlirContext);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(kernels, context, "kernels", /*disableVerification=*/true);
  if (!module)
    return emitError(kernels.getLoc()) << "kernels do not translate to LLVM IR";
  std::string error;
  FailureOr<std::string> ptx = emitPtx(*module, target, error);
  if (failed(ptx))
    return emitError(kernels.getLoc()) << "no PTX for " << target.arch << ": " << error;
  return ptx;
}

} // namespace meshwork::target
