// Kernels as machine code: from a module of LLVM-lowerable dialects to an ELF
// shared object, in this process.
//
//   FailureOr<std::vector<char>> code = compileToSharedObject(kernels, target);
//   plan.code = *code;
#pragma once

#include <vector>

#include "mlir/IR/BuiltinOps.h"

#include "passes/codegen/machine/CpuTarget.h"

namespace meshwork::codegen {

/// Lowers `kernels` (scf, vector, arith, math, llvm) in place to the LLVM
/// dialect, optimizes, emits and links it. Every llvm.func that is not private
/// is exported. The object needs no other library: an undefined symbol is an
/// error, as is a math function that has no vector code here. Equal modules and
/// targets give equal bytes.
mlir::FailureOr<std::vector<char>>
compileToSharedObject(mlir::ModuleOp kernels, const CpuTarget &target);

} // namespace meshwork::codegen
