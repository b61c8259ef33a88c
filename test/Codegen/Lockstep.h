// Executes a gpu.func on this machine, to test what it means: all threads of a
// block go through each op together, those that a branch or loop leaves out
// stand still. Blocks run last first.
//
// What this checks besides results: every access lies in memory that the test
// gave (shared memory included) and is aligned as it claims; every thread comes
// to every barrier and shuffle; two warps touch the same shared memory, one of
// them writing, only with a barrier between.
#pragma once

#include <string>
#include <vector>

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace meshwork::codegen::test {

struct Memory {
  char *begin;
  size_t bytes;
};

/// Runs all blocks. `arguments`: addresses, then i32 values. Accesses may touch
/// the 16-byte groups that `memory` touches, as a vector's masked ends do;
/// stores may not. Returns what went wrong, or nothing.
std::string runInLockstep(mlir::gpu::GPUFuncOp function, llvm::ArrayRef<uint64_t> arguments, llvm::ArrayRef<Memory> memory);

} // namespace meshwork::codegen::test
