// LLVM IR to PTX. ptxas schedules and allocates registers.
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "passes/codegen/machine/CudaCodeSteps.h"
#include "passes/codegen/machine/LlvmEmit.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {
std::unique_ptr<llvm::TargetMachine> makeMachine(const CudaTarget &target,
                                                 std::string &error) {
  static const bool initialized = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)initialized;
  llvm::Triple triple("nvptx64-nvidia-cuda");
  const llvm::Target *backend =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(
      backend->createTargetMachine(triple, target.arch, target.ptxFeature,
                                   llvm::TargetOptions(), std::nullopt));
}

/// One module of all kernels for one target.
class PtxBuilder {
public:
  PtxBuilder(const CudaKernels &kernels, const CudaTarget &target)
      : kernels(kernels), target(target) {}

  FailureOr<std::string> run() {
    machine = makeMachine(target, error);
    if (!machine)
      return failure();
    std::unique_ptr<llvm::Module> module = translate(kernels.kernels);
    if (!module)
      return failure();
    optimizeKernels(*module, *machine);
    if (kernels.calls && failed(addCalls(*module)))
      return failure();
    FailureOr<llvm::SmallVector<char, 0>> text =
        emitFile(*module, *machine, llvm::CodeGenFileType::AssemblyFile);
    if (failed(text)) {
      error = "LLVM cannot write PTX";
      return failure();
    }
    return std::string(text->begin(), text->end());
  }

  std::string error;

private:
  std::unique_ptr<llvm::Module> translate(gpu::GPUModuleOp source) {
    std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(
        source, context, source.getName(), /*disableVerification=*/true);
    if (!module)
      error = "kernels do not translate to LLVM IR";
    else
      setMachine(*module, *machine);
    return module;
  }

  LogicalResult addCalls(llvm::Module &module) {
    std::unique_ptr<llvm::Module> calls = translate(kernels.calls);
    if (!calls || failed(linkLibrary(*calls, kernels.library, *machine, error)))
      return failure();
    if (llvm::Linker::linkModules(module, std::move(calls))) {
      error = "kernels that call device functions do not link to the others";
      return failure();
    }
    return success();
  }

  const CudaKernels &kernels;
  const CudaTarget &target;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine;
};

void registerTranslations(MLIRContext &context) {
  registerBuiltinDialectTranslation(context);
  registerGPUDialectTranslation(context);
  registerLLVMDialectTranslation(context);
  registerNVVMDialectTranslation(context);
}
} // namespace

FailureOr<std::vector<std::string>> compileToPtx(const CudaKernels &kernels,
                                                 ArrayRef<CudaTarget> targets) {
  gpu::GPUModuleOp module = kernels.kernels;
  if (failed(lowerToNvvm(module)) ||
      (kernels.calls && failed(lowerToNvvm(kernels.calls))))
    return failure();
  registerTranslations(*module.getContext());
  std::vector<std::string> texts;
  for (const CudaTarget &target : targets) {
    PtxBuilder builder(kernels, target);
    FailureOr<std::string> ptx = builder.run();
    if (failed(ptx))
      return emitError(module.getLoc())
             << "no PTX for " << target.arch << ": " << builder.error;
    texts.push_back(std::move(*ptx));
  }
  return texts;
}

} // namespace meshwork::codegen
