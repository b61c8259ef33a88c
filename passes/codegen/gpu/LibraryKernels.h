// Kernels that call device functions of library/: one for each set of
// constants.
//
//   FailureOr<LibraryKernels> library = emitLibraryKernels(schedule,
//   gpuModule); instruction.kernels = library->ofInstruction.at(op);
#pragma once

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "passes/codegen/gpu/DeviceCall.h"

namespace meshwork::codegen {

struct LibraryKernel {
  std::string function;
  int64_t numPointers, grid, block, sharedBytes;
  llvm::SmallVector<uint32_t> streams;
};

struct LibraryKernels {
  std::vector<LibraryKernel> kernels;
  /// Indices into `kernels` of each instruction that has some, in order.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<uint32_t>> ofInstruction;
};

/// Appends the kernels of all instructions of `schedule` to `module`, whose
/// context has the dialects of loadGpuKernelDialects. A kernel is a gpu.func
/// with the arguments that Plan.fbs says. It calls a function that the module
/// declares. Kernels that differ in streams alone share a gpu.func. Reports
/// every instruction that has none.
mlir::FailureOr<LibraryKernels>
emitLibraryKernels(mlir::ModuleOp schedule, mlir::gpu::GPUModuleOp module);

} // namespace meshwork::codegen
