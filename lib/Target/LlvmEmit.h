// The end of the way of all kernels, whatever machine they are for.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/CodeGen.h"
#include "mlir/Support/LLVM.h"

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace meshwork::target {

/// Optimizes `module` for `machine` and returns an object or assembly. Kernels
/// arrive vectorized, so the passes are few: merge equal values, simplify, move
/// what a loop does not change out of it. The generic O2 pipeline takes three
/// times as long and finds nothing more. Fails when the machine has no such file.
mlir::FailureOr<llvm::SmallVector<char, 0>>
optimizeAndEmit(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType type);

} // namespace meshwork::target
