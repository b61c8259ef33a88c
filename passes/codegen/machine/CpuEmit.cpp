// LLVM IR to a relocatable object.
#include "passes/codegen/machine/CpuObjectSteps.h"
#include "passes/codegen/machine/LlvmEmit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {
std::unique_ptr<llvm::TargetMachine> makeMachine(const CpuTarget &target,
                                                 std::string &error) {
  static const bool initialized = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return true;
  }();
  (void)initialized;
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  const llvm::Target *backend =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return nullptr;
  std::vector<std::string> features;
  for (const std::string &feature : target.requiredFeatures)
    features.push_back("+" + feature);
  llvm::TargetOptions options;
  options.EmitAddrsig = false;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      triple, "x86-64", llvm::join(features, ","), options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small));
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

} // namespace

FailureOr<llvm::SmallVector<char, 0>>
emitObject(llvm::Module &module, const CpuTarget &target, std::string &error) {
  std::unique_ptr<llvm::TargetMachine> machine = makeMachine(target, error);
  if (!machine)
    return failure();
  addAttributes(module, target);
  optimizeKernels(module, *machine);
  FailureOr<llvm::SmallVector<char, 0>> object =
      emitFile(module, *machine, llvm::CodeGenFileType::ObjectFile);
  if (failed(object))
    error = "LLVM cannot write objects for this target";
  return object;
}

} // namespace meshwork::codegen
