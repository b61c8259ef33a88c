// The function of a kernel, and which kernels share one.
#include "passes/codegen/gpu/GpuKernel.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/codegen/gpu/BlockKernel.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;

void loadGpuKernelDialects(MLIRContext &context) {
  context
      .loadDialect<arith::ArithDialect, cf::ControlFlowDialect, gpu::GPUDialect,
                   LLVM::LLVMDialect, math::MathDialect, NVVM::NVVMDialect,
                   scf::SCFDialect, vector::VectorDialect>();
}

int64_t GpuKernel::grid() const {
  int64_t blocks = 0;
  for (const Geometry &part : parts)
    blocks += part.grid();
  return blocks;
}

int64_t GpuKernel::block() const {
  int64_t threads = 0;
  for (const Geometry &part : parts)
    threads = std::max(threads, part.block());
  return threads;
}

namespace {
/// Equal for functions that are equal but for their names.
std::string textOf(gpu::GPUFuncOp function) {
  std::string text, name = function.getName().str();
  llvm::raw_string_ostream stream(text);
  function->print(stream, OpPrintingFlags().useLocalScope());
  for (const std::string &mark : {"@shared_" + name, "@" + name})
    for (size_t at = text.find(mark); at != std::string::npos;
         at = text.find(mark, at))
      text.erase(at, mark.size());
  return text;
}
} // namespace

FailureOr<GpuKernel> emitGpuKernel(const KernelSpec &spec,
                                   gpu::GPUModuleOp module) {
  return emitGpuKernel(launchOf(spec, 0), spec, module);
}

FailureOr<std::vector<GpuKernel>> emitGpuKernels(const KernelSpecs &specs,
                                                 gpu::GPUModuleOp module) {
  std::vector<GpuKernel> kernels;
  llvm::StringMap<std::string> known;
  bool allEmitted = true; // Report every cluster that has no kernel.
  for (const LaunchSpec &launch : specs.launches) {
    FailureOr<GpuKernel> kernel = emitGpuKernel(launch, specs.clusters, module);
    allEmitted &= succeeded(kernel);
    if (failed(kernel))
      continue;
    auto function = module.lookupSymbol<gpu::GPUFuncOp>(kernel->function);
    auto [entry, isNew] = known.try_emplace(textOf(function), kernel->function);
    if (!isNew) {
      if (Operation *shared = module.lookupSymbol("shared_" + kernel->function))
        shared->erase();
      function.erase();
      kernel->function = entry->second;
    }
    kernels.push_back(std::move(*kernel));
  }
  if (!allEmitted)
    return failure();
  return kernels;
}

} // namespace meshwork::codegen
