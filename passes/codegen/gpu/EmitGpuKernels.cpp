// Shows the GPU kernel of each cluster, or writes its code.
#include "lib/Target/CudaCode.h"
#include "llvm/Support/FileSystem.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/codegen/KernelSpecs.h"
#include "passes/codegen/gpu/GpuKernel.h"
#include "passes/codegen/gpu/Passes.h"

using namespace mlir;
namespace meshwork::codegen {
#define GEN_PASS_DEF_EMITGPUKERNELSPASS
#define GEN_PASS_DEF_EMITCUDACODEPASS
#include "passes/codegen/gpu/Passes.h.inc"
namespace {

FailureOr<std::vector<GpuKernel>> emitAll(ModuleOp module, gpu::GPUModuleOp &kernels) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  kernels = gpu::GPUModuleOp::create(builder, module.getLoc(), "kernels");
  return emitGpuKernels(kernelSpecsOf(module), kernels);
}

struct EmitGpuKernelsPass : impl::EmitGpuKernelsPassBase<EmitGpuKernelsPass> {
  void runOnOperation() override {
    gpu::GPUModuleOp kernels;
    if (failed(emitAll(getOperation(), kernels)))
      signalPassFailure();
  }
};

struct EmitCudaCodePass : impl::EmitCudaCodePassBase<EmitCudaCodePass> {
  using EmitCudaCodePassBase::EmitCudaCodePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<target::CudaTarget> target = target::resolveCudaTarget(arch, [&] { return module.emitError(); });
    if (failed(target))
      return signalPassFailure();
    gpu::GPUModuleOp kernels;
    FailureOr<std::vector<GpuKernel>> emitted = emitAll(module, kernels);
    FailureOr<std::string> ptx = failure();
    if (succeeded(emitted))
      ptx = target::compileToPtx(kernels, *target);
    kernels.erase();
    if (failed(ptx) || failed(write(*ptx)) || (assemble && failed(report(*ptx, *emitted, *target))))
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
      return emitError(getOperation().getLoc()) << "cannot write " << output.getValue() << ": " << code.message();
    return success();
  }

  LogicalResult report(StringRef ptx, ArrayRef<GpuKernel> emitted, const target::CudaTarget &target) {
    std::string path = target::findPtxas(this->ptxas), error;
    if (path.empty())
      return emitError(getOperation().getLoc()) << "found no ptxas in PATH, /usr/local/cuda/bin or the Python environment; install CUDA's, or name one with ptxas=";
    FailureOr<target::CudaBinary> binary = target::assemblePtx(ptx, target, path, error);
    if (failed(binary))
      return emitError(getOperation().getLoc()) << "kernels do not assemble: " << error;
    bool allFit = true;
    for (const target::KernelResources &used : binary->resources) {
      const auto *kernel = llvm::find_if(emitted, [&](const GpuKernel &k) { return k.function == used.kernel; });
      if (kernel == emitted.end())
        continue;
      const Geometry &g = kernel->geometry;
      llvm::errs() << used.kernel << " " << target.arch << ": grid " << g.grid() << " block " << g.block() << " shared " << g.sharedBytes
                   << " threads/row " << g.threadsPerRow << " width " << g.width << (g.loops ? " loops" : " holds ") << (g.loops ? "" : std::to_string(g.vectors))
                   << ", registers " << used.registers << " spill bytes " << used.spillBytes << "\n";
      if (maxSpillBytes < 0 || used.spillBytes <= maxSpillBytes)
        continue;
      allFit = false;
      emitError(getOperation().getLoc()) << used.kernel << " spills " << used.spillBytes << " bytes on " << target.arch << ", expected no more than " << maxSpillBytes;
    }
    return success(allFit);
  }
};
} // namespace
} // namespace meshwork::codegen
