#include "passes/codegen/gpu/DeviceKernels.h"

#include "passes/codegen/KernelSpecs.h"

using namespace mlir;
namespace meshwork::codegen {

FailureOr<DeviceKernels> emitDeviceKernels(ModuleOp module, ModuleOp into) {
  loadGpuKernelDialects(*module.getContext());
  OpBuilder builder = OpBuilder::atBlockEnd(into.getBody());
  DeviceKernels kernels;
  kernels.clusterModule =
      gpu::GPUModuleOp::create(builder, module.getLoc(), "kernels");
  FailureOr<std::vector<GpuKernel>> clusters =
      emitGpuKernels(kernelSpecsOf(module), kernels.clusterModule);
  kernels.libraryModule =
      gpu::GPUModuleOp::create(builder, module.getLoc(), "library_kernels");
  FailureOr<LibraryKernels> library =
      emitLibraryKernels(module, kernels.libraryModule);
  if (failed(clusters) || failed(library))
    return failure();
  kernels.clusters = std::move(*clusters);
  kernels.library = std::move(*library);
  if (kernels.library.kernels.empty()) {
    kernels.libraryModule.erase();
    kernels.libraryModule = {};
  }
  return kernels;
}

} // namespace meshwork::codegen
