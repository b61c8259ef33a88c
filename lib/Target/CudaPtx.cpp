// LLVM IR to PTX. ptxas schedules and allocates registers, so the passes are
// those that it does not repeat: merge equal values, simplify, infer what an
// address points to.
#include "lib/Target/CudaCodeSteps.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
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
constexpr const char *pipeline = "function(early-cse<memssa>,instcombine<no-verify-fixpoint>,loop-mssa(licm),"
                                 "early-cse<memssa>,simplifycfg)";

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

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  llvm::ModulePassManager passes;
  llvm::cantFail(builder.parsePassPipeline(passes, pipeline));
  passes.run(module, modules);
}

FailureOr<std::string> emitPtx(llvm::Module &module, const CudaTarget &target, std::string &error) {
  std::unique_ptr<llvm::TargetMachine> machine = makeMachine(target, error);
  if (!machine)
    return failure();
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple());
  optimize(module, *machine);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager emission;
  if (machine->addPassesToEmitFile(emission, stream, nullptr, llvm::CodeGenFileType::AssemblyFile)) {
    error = "LLVM cannot write PTX";
    return failure();
  }
  emission.run(module);
  return text.str().str();
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
