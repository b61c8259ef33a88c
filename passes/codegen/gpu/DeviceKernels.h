// All that a schedule runs on a GPU beside products and collectives.
//
//   FailureOr<DeviceKernels> kernels = emitDeviceKernels(schedule, into);
//   compileToPtx({kernels->clusterModule, kernels->libraryModule,
//   deviceLibrary()}, targets);
#pragma once

#include "passes/codegen/gpu/GpuKernel.h"
#include "passes/codegen/gpu/LibraryKernels.h"

namespace meshwork::codegen {

struct DeviceKernels {
  mlir::gpu::GPUModuleOp clusterModule;
  mlir::gpu::GPUModuleOp libraryModule; // null when no instruction needs it
  std::vector<GpuKernel> clusters;      // in the order of KernelSpecs::launches
  LibraryKernels library;
};

/// Appends the kernels of `module`'s clusters and instructions to `into`, in
/// two gpu.modules. Reports all that have none.
mlir::FailureOr<DeviceKernels> emitDeviceKernels(mlir::ModuleOp module,
                                                 mlir::ModuleOp into);

} // namespace meshwork::codegen
