// From the clusters of a launch to one kernel of a GPU.
//
//   FailureOr<GpuKernel> kernel = emitGpuKernel(launch, clusters, gpuModule);
//   launch.symbol = kernel->function; launch.grid = kernel->grid();
//
// The function takes a pointer to the first element of each argument of the
// launch, then the stream of each draw (i32), part by part. Its grid and block
// are one-dimensional.
#pragma once

#include <string>

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "passes/codegen/KernelSpecs.h"
#include "passes/codegen/gpu/Geometry.h"

namespace meshwork::codegen {

struct GpuKernel {
  std::string symbol;   // of the launch
  std::string function; // that computes it; kernels that differ in streams
                        // alone share one
  llvm::SmallVector<int32_t> streams;
  /// Of each part, whose blocks lie one after the other in the grid.
  llvm::SmallVector<Geometry, 1> parts;

  int64_t grid() const;
  /// The largest of all parts; of the others, threads past their own do
  /// nothing.
  int64_t block() const;
};

/// Appends a launch as a gpu.func of arith, cf, math, scf, vector, gpu and llvm
/// to `module`, whose context must have these dialects (loadGpuKernelDialects).
/// Errors are those of emitKernel and chooseGeometry.
mlir::FailureOr<GpuKernel> emitGpuKernel(const LaunchSpec &launch,
                                         llvm::ArrayRef<KernelSpec> clusters,
                                         mlir::gpu::GPUModuleOp module);
/// Of one cluster.
mlir::FailureOr<GpuKernel> emitGpuKernel(const KernelSpec &spec,
                                         mlir::gpu::GPUModuleOp module);

/// All launches, in order; equal functions are one, named after the first.
mlir::FailureOr<std::vector<GpuKernel>>
emitGpuKernels(const KernelSpecs &specs, mlir::gpu::GPUModuleOp module);

/// Loads what the kernels consist of.
void loadGpuKernelDialects(mlir::MLIRContext &context);

} // namespace meshwork::codegen
