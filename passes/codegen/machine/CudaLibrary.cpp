// Device functions into the kernels that call them.
#include "passes/codegen/machine/CudaCodeSteps.h"
#include "passes/codegen/machine/LlvmEmit.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {

/// For any machine, part of whoever calls them, and nothing else.
void prepareFunctions(llvm::Module &part) {
  for (llvm::Function &function : part) {
    if (function.isDeclaration())
      continue;
    for (const char *attribute : {"target-cpu", "target-features"})
      function.removeFnAttr(attribute);
    function.removeFnAttr(llvm::Attribute::NoInline);
    function.removeFnAttr(llvm::Attribute::OptimizeNone);
    function.addFnAttr(llvm::Attribute::AlwaysInline);
  }
}

/// Everything of `module` that is not in `kept` is its own.
void internalize(llvm::Module &module, const llvm::StringSet<> &kept) {
  for (llvm::GlobalValue &value : module.global_values())
    if (!value.isDeclaration() && !kept.contains(value.getName())) {
      value.setLinkage(llvm::GlobalValue::InternalLinkage);
      value.setVisibility(llvm::GlobalValue::DefaultVisibility);
    }
}

bool isMissing(const llvm::Function &function) {
  return function.isDeclaration() && !function.isIntrinsic() &&
         !function.use_empty();
}
} // namespace

LogicalResult linkLibrary(llvm::Module &module,
                          std::span<const std::string_view> library,
                          llvm::TargetMachine &machine, std::string &error) {
  llvm::StringSet<> kept;
  for (llvm::GlobalValue &value : module.global_values())
    if (!value.isDeclaration())
      kept.insert(value.getName());
  for (std::string_view bytes : library) {
    // Lazily: of some hundred functions, a plan calls a few.
    auto part = llvm::getLazyBitcodeModule(
        llvm::MemoryBufferRef(StringRef(bytes.data(), bytes.size()),
                              "device library"),
        module.getContext(), /*ShouldLazyLoadMetadata=*/true);
    if (!part) {
      error = "the device library does not parse: " +
              llvm::toString(part.takeError());
      return failure();
    }
    setMachine(**part, machine);
    prepareFunctions(**part);
    if (llvm::Linker::linkModules(module, std::move(*part),
                                  llvm::Linker::LinkOnlyNeeded)) {
      error = "the device library does not link to kernels";
      return failure();
    }
  }
  internalize(module, kept);
  for (const llvm::Function &function : module)
    if (isMissing(function)) {
      error = "the device library has no function '" +
              function.getName().str() + "'";
      return failure();
    }
  // Constants must be in place before any loop is touched.
  runPasses(module, machine, "always-inline,globaldce");
  runPasses(module, machine, "default<O2>");
  return success();
}

} // namespace meshwork::codegen
