// Shows the GPU kernel of each cluster, or writes its code.
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/codegen/gpu/DeviceKernels.h"
#include "passes/codegen/gpu/Passes.h"
#include "passes/codegen/gpu/library/DeviceLibrary.h"
#include "passes/codegen/machine/CudaCode.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;
namespace meshwork::codegen {
#define GEN_PASS_DEF_EMITGPUKERNELSPASS
#define GEN_PASS_DEF_EMITCUDACODEPASS
#include "passes/codegen/gpu/Passes.h.inc"
namespace {

/// The launch of `function`, and how a cluster's threads share its rows, or how
/// many clusters there are.
std::string launchText(const DeviceKernels &kernels, StringRef function) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (const GpuKernel &kernel : kernels.clusters)
    if (const Geometry &g = kernel.parts.front();
        kernel.function != function || !text.empty())
      continue;
    else if (kernel.parts.size() > 1)
      stream << "grid " << kernel.grid() << " block " << kernel.block()
             << " parts " << kernel.parts.size();
    else
      stream << "grid " << g.grid() << " block " << g.block() << " shared "
             << g.sharedBytes << " threads/row " << g.threadsPerRow << " width "
             << g.width
             << (g.loops ? " loops" : " holds " + std::to_string(g.vectors));
  for (const LibraryKernel &kernel : kernels.library.kernels)
    if (kernel.function == function && text.empty())
      stream << "grid " << kernel.grid << " block " << kernel.block
             << " shared " << kernel.sharedBytes;
  return text;
}

struct EmitGpuKernelsPass : impl::EmitGpuKernelsPassBase<EmitGpuKernelsPass> {
  void runOnOperation() override {
    if (failed(emitDeviceKernels(getOperation(), getOperation())))
      signalPassFailure();
  }
};

struct EmitCudaCodePass : impl::EmitCudaCodePassBase<EmitCudaCodePass> {
  using EmitCudaCodePassBase::EmitCudaCodePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<CudaTarget> target =
        resolveCudaTarget(arch, [&] { return module.emitError(); });
    if (failed(target))
      return signalPassFailure();
    FailureOr<DeviceKernels> emitted = emitDeviceKernels(module, module);
    FailureOr<std::vector<std::string>> ptx = failure();
    if (succeeded(emitted))
      ptx = compileToPtx(
          {emitted->clusterModule, emitted->libraryModule, deviceLibrary()},
          {*target});
    for (auto kernels : llvm::to_vector(module.getOps<gpu::GPUModuleOp>()))
      kernels.erase();
    if (failed(ptx) || failed(write(ptx->front())) ||
        (assemble && failed(report(ptx->front(), *emitted, *target))))
      signalPassFailure();
  }

private:
  LogicalResult write(StringRef ptx) {
    if (output.empty())
      return success();
    std::error_code code;
    llvm::raw_fd_ostream stream(output, code);
    if (!code) {
      stream << ptx;
      stream.flush();
      code = stream.error();
      stream.clear_error();
    }
    if (code)
      return emitError(getOperation().getLoc())
             << "cannot write " << output.getValue() << ": " << code.message();
    return success();
  }

  LogicalResult report(StringRef ptx, const DeviceKernels &emitted,
                       const CudaTarget &target) {
    std::string path = findPtxas(this->ptxas), error;
    if (path.empty())
      return emitError(getOperation().getLoc())
             << "found no ptxas in PATH, /usr/local/cuda/bin or the Python "
                "environment; install CUDA's, or name one with ptxas=";
    FailureOr<CudaBinary> binary = assemblePtx(ptx, target, path, error);
    if (failed(binary))
      return emitError(getOperation().getLoc())
             << "kernels do not assemble: " << error;
    bool allFit = true;
    for (const KernelResources &used : binary->resources) {
      llvm::errs() << used.kernel << " " << target.arch << ": "
                   << launchText(emitted, used.kernel) << ", registers "
                   << used.registers << " spill bytes " << used.spillBytes
                   << "\n";
      if (maxSpillBytes < 0 || used.spillBytes <= maxSpillBytes)
        continue;
      allFit = false;
      emitError(getOperation().getLoc())
          << used.kernel << " spills " << used.spillBytes << " bytes on "
          << target.arch << ", expected no more than "
          << maxSpillBytes.getValue();
    }
    return success(allFit);
  }
};
} // namespace
} // namespace meshwork::codegen
