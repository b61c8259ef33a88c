// Layers of a model differ in the random streams of their dropout alone. The
// functions behind such kernels take the stream as an argument, and equal ones
// become one here, before anything costly happens to them.
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "passes/codegen/machine/CpuObjectSteps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {

/// Equal for equal functions: types, and the ops in their order.
llvm::hash_code hashOf(LLVM::LLVMFuncOp function) {
  llvm::hash_code hash = hash_value(Type(function.getFunctionType()));
  function.getBody().walk([&](Operation *op) {
    hash = llvm::hash_combine(hash, op->getName(), op->getAttrDictionary());
  });
  return hash;
}

bool areEqual(LLVM::LLVMFuncOp a, LLVM::LLVMFuncOp b) {
  return a.getFunctionType() == b.getFunctionType() &&
         OperationEquivalence::isRegionEquivalentTo(
             &a.getBody(), &b.getBody(), OperationEquivalence::IgnoreLocations);
}
} // namespace

void mergeEqualFunctions(ModuleOp kernels) {
  llvm::DenseMap<size_t, SmallVector<LLVM::LLVMFuncOp>> known;
  llvm::StringMap<StringRef> replacement;
  for (auto function :
       llvm::make_early_inc_range(kernels.getOps<LLVM::LLVMFuncOp>())) {
    if (function.getLinkage() != LLVM::Linkage::Internal)
      continue;
    SmallVector<LLVM::LLVMFuncOp> &alike = known[hashOf(function)];
    auto *same = llvm::find_if(alike, [&](LLVM::LLVMFuncOp other) {
      return areEqual(function, other);
    });
    if (same == alike.end()) {
      alike.push_back(function);
      continue;
    }
    replacement[function.getName()] = same->getName();
    function.erase();
  }
  kernels.walk([&](LLVM::CallOp call) {
    if (auto callee = call.getCallee())
      if (auto found = replacement.find(*callee); found != replacement.end())
        call.setCallee(found->second);
  });
}

} // namespace meshwork::codegen
