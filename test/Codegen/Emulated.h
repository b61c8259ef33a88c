// Runs a GPU kernel on this machine, as PTX in the emulator
// (test/Support/Emulator), which checks accesses, barriers and races besides.
#pragma once

#include <string>
#include <vector>

#include "passes/codegen/gpu/GpuKernel.h"

namespace meshwork::codegen::test {

struct Bytes {
  char *begin;
  size_t count;
};

/// Blocks of a grid.
struct Blocks {
  uint64_t first = 0, end = UINT64_MAX;
};

/// Lowers `module`, whose one kernel is `kernel`, and runs its blocks.
/// `arguments`: addresses, then i32 values. Accesses may touch the 16-byte
/// groups that `memory` touches, as a vector's masked ends do; that nothing is
/// stored there is for the caller to see. Returns what went wrong, or nothing.
std::string runEmulated(mlir::gpu::GPUModuleOp module, const GpuKernel &kernel,
                        llvm::ArrayRef<uint64_t> arguments,
                        llvm::ArrayRef<Bytes> memory,
                        llvm::StringRef arch = "sm_80",
                        llvm::ArrayRef<Blocks> blocks = Blocks());

} // namespace meshwork::codegen::test
