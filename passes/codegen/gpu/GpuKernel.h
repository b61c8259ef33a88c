// From a cluster of fusion to one kernel of a GPU.
//
//   FailureOr<GpuKernel> kernel = emitGpuKernel(spec, gpuModule);
//   launch.symbol = kernel->function; launch.grid = kernel->geometry.grid();
//
// The function takes a pointer to the first element of each operand, then of
// each result, then the stream of each dropout (i32). Its grid and block are
// one-dimensional.
#pragma once

#include <string>

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "passes/codegen/gpu/Geometry.h"

namespace meshwork::codegen {

struct GpuKernel {
  std::string symbol;   // of the spec
  std::string function; // that computes it; kernels that differ in streams
                        // alone share one
  llvm::SmallVector<int32_t> streams;
  Geometry geometry;
};

/// Appends `spec` as a gpu.func of arith, math, scf, vector, gpu and llvm to
/// `module`, whose context must have these dialects (loadGpuKernelDialects).
/// Errors are those of emitKernel and chooseGeometry.
mlir::FailureOr<GpuKernel> emitGpuKernel(const KernelSpec &spec,
                                         mlir::gpu::GPUModuleOp module);

/// All of them, in order; equal functions are one, named after the first.
mlir::FailureOr<std::vector<GpuKernel>>
emitGpuKernels(llvm::ArrayRef<KernelSpec> specs, mlir::gpu::GPUModuleOp module);

/// Loads what the kernels consist of.
void loadGpuKernelDialects(mlir::MLIRContext &context);

} // namespace meshwork::codegen
