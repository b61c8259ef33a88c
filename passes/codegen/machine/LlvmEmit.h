// The end of the way of all kernels, whatever machine they are for.
#pragma once

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/CodeGen.h"

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace meshwork::codegen {

/// Gives `module` the machine's triple and layout of data.
void setMachine(llvm::Module &module, llvm::TargetMachine &machine);

/// Runs a pipeline in LLVM's own words on a module of `machine`.
void runPasses(llvm::Module &module, llvm::TargetMachine &machine,
               llvm::StringRef pipeline);

/// Makes `module` one of `machine` and optimizes it. Kernels
/// arrive vectorized, so the passes are few: merge equal values, simplify, move
/// what a loop does not change out of it. The generic O2 pipeline takes three
/// times as long and finds nothing more.
void optimizeKernels(llvm::Module &module, llvm::TargetMachine &machine);

/// An object or assembly. Fails when the machine has no such file.
mlir::FailureOr<llvm::SmallVector<char, 0>>
emitFile(llvm::Module &module, llvm::TargetMachine &machine,
         llvm::CodeGenFileType type);

} // namespace meshwork::codegen
