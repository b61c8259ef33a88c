// LLVM IR to a relocatable object. Kernels arrive vectorized, so the passes are
// few: merge equal values, simplify, move what a loop does not change out of it.
// The generic O2 pipeline takes three times as long and finds nothing more.
#include "lib/Target/CpuObjectSteps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
namespace meshwork::target {
namespace {
constexpr const char *pipeline = "function(early-cse<memssa>,instcombine<no-verify-fixpoint>,loop-mssa(licm),"
                                 "early-cse<memssa>,simplifycfg)";

std::unique_ptr<llvm::TargetMachine> makeMachine(const CpuTarget &target, std::string &error) {
  static const bool initialized = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return true;
  }();
  (void)initialized;
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return nullptr;
  std::vector<std::string> features;
  for (const std::string &feature : target.requiredFeatures)
    features.push_back("+" + feature);
  llvm::TargetOptions options;
  options.EmitAddrsig = false;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      triple, "x86-64", llvm::join(features, ","), options, llvm::Reloc::PIC_, llvm::CodeModel::Small));
}

void addAttributes(llvm::Module &module, const CpuTarget &target) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("tune-cpu", target.tuneFor);
    function.addFnAttr("no-builtins"); // nothing may become a call of memset
    function.addFnAttr("prefer-vector-width", llvm::utostr(target.vectorBits));
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
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
} // namespace

FailureOr<llvm::SmallVector<char, 0>> emitObject(llvm::Module &module, const CpuTarget &target, std::string &error) {
  std::unique_ptr<llvm::TargetMachine> machine = makeMachine(target, error);
  if (!machine)
    return failure();
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple());
  addAttributes(module, target);
  optimize(module, *machine);
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emission;
  if (machine->addPassesToEmitFile(emission, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    error = "LLVM cannot write objects for this target";
    return failure();
  }
  emission.run(module);
  return object;
}

} // namespace meshwork::target
