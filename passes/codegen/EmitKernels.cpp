// Shows the kernel of each cluster.
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/codegen/KernelEmitter.h"
#include "passes/codegen/Passes.h"

using namespace mlir;
namespace meshwork::codegen {
#define GEN_PASS_DEF_EMITKERNELSPASS
#include "passes/codegen/Passes.h.inc"
namespace {

struct EmitKernelsPass : impl::EmitKernelsPassBase<EmitKernelsPass> {
  using EmitKernelsPassBase::EmitKernelsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<CpuTarget> target =
        resolveCpuTarget(arch, [&] { return module.emitError(); });
    if (failed(target))
      return signalPassFailure();
    SmallVector<transformer::FusedOp> clusters;
    module.walk([&](transformer::FusedOp op) { clusters.push_back(op); });
    bool allEmitted = true; // Report every cluster that has no kernel.
    for (auto [i, op] : llvm::enumerate(clusters))
      allEmitted &= succeeded(emitKernel(
          contiguousSpec(op, "kernel_" + std::to_string(i)), module, *target));
    if (!allEmitted)
      signalPassFailure();
  }
};
} // namespace
} // namespace meshwork::codegen
