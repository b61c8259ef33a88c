#include "passes/codegen/machine/LlvmEmit.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {
constexpr const char *ofKernels = "function(early-cse<memssa>,instcombine<no-"
                                  "verify-fixpoint>,loop-mssa(licm),"
                                  "early-cse<memssa>,simplifycfg)";
} // namespace

void setMachine(llvm::Module &module, llvm::TargetMachine &machine) {
  module.setDataLayout(machine.createDataLayout());
  module.setTargetTriple(machine.getTargetTriple());
}

void runPasses(llvm::Module &module, llvm::TargetMachine &machine,
               llvm::StringRef pipeline) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  machine.registerPassBuilderCallbacks(builder);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  llvm::ModulePassManager passes;
  llvm::cantFail(builder.parsePassPipeline(passes, pipeline));
  passes.run(module, modules);
}

void optimizeKernels(llvm::Module &module, llvm::TargetMachine &machine) {
  setMachine(module, machine);
  runPasses(module, machine, ofKernels);
}

FailureOr<llvm::SmallVector<char, 0>> emitFile(llvm::Module &module,
                                               llvm::TargetMachine &machine,
                                               llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> file;
  llvm::raw_svector_ostream stream(file);
  llvm::legacy::PassManager emission;
  if (machine.addPassesToEmitFile(emission, stream, nullptr, type))
    return failure();
  emission.run(module);
  return file;
}

} // namespace meshwork::codegen
