// The steps of compileToSharedObject, each tested through it.
#pragma once

#include <memory>

#include "mlir/IR/BuiltinOps.h"
#include "passes/codegen/machine/CpuTarget.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir {
class RewritePatternSet;
}
namespace llvm {
class Module;
class LLVMContext;
} // namespace llvm

namespace meshwork::codegen {

/// Leaves one of each set of internal functions that are equal but for names.
void mergeEqualFunctions(mlir::ModuleOp kernels);

/// Own code for functions of math, preferred to upstream's polynomials.
void populateMathExpansion(mlir::RewritePatternSet &patterns);

/// Rewrites a module of kernels to the LLVM dialect alone.
mlir::LogicalResult lowerToLlvmDialect(mlir::ModuleOp kernels);

/// Optimizes a module of LLVM IR for `target` and returns a relocatable object.
/// On failure `error` says why.
mlir::FailureOr<llvm::SmallVector<char, 0>>
emitObject(llvm::Module &module, const CpuTarget &target, std::string &error);

/// Links relocatable objects to one shared object that needs nothing else.
/// On failure `error` holds the linker's words.
mlir::FailureOr<std::vector<char>>
linkSharedObject(llvm::ArrayRef<llvm::SmallVector<char, 0>> objects,
                 std::string &error);

} // namespace meshwork::codegen
