// A schedule's kernels as a plan holds them.
#pragma once

#include "dialects/schedule/ProgramTables.h"
#include "lib/Spec/Spec.h"
#include "meshwork/Plan/Plan.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/codegen/KernelSpecs.h"
#include "passes/codegen/machine/CpuTarget.h"
#include "passes/codegen/machine/CudaTarget.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace meshwork::codegen {

/// The machines that a plan is for: a kind of CPU, or some kinds of GPU.
struct PlanTarget {
  std::optional<CpuTarget>
      cpu; // with GPUs: what their results can be compared with
  std::vector<CudaTarget> gpus; // none: for the CPU

  spec::Device device() const {
    return gpus.empty() ? spec::Device::cpu : spec::Device::cuda;
  }
};

/// As the spec says, and for a GPU's plan with code for the CPU `withCpu`,
/// where it is not empty; errors are those of resolveCpuTarget.
mlir::FailureOr<PlanTarget>
resolveTarget(const spec::Spec &spec, llvm::StringRef withCpu,
              llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

using schedule::KernelNumbers;

/// The entry of a launch's kernel, without what only a GPU's has.
std::unique_ptr<plan::KernelT> entryOf(const codegen::LaunchSpec &launch,
                                       const codegen::KernelSpecs &specs);
/// Adds the entries of the CPU's kernels, without their code.
void addCpuEntries(mlir::ModuleOp module, plan::PlanT &plan,
                   KernelNumbers &numbers);

/// Each compiles the kernels of `module` and adds their entries and code to
/// `plan`. Errors, as diagnostics: a cluster or instruction without a kernel;
/// kernels that ptxas, where there is one, does not take.
mlir::LogicalResult addCpuCode(mlir::ModuleOp module, const CpuTarget &target,
                               plan::PlanT &plan, KernelNumbers &numbers);
mlir::LogicalResult addCudaCode(mlir::ModuleOp module,
                                llvm::ArrayRef<CudaTarget> targets,
                                plan::PlanT &plan, KernelNumbers &numbers);
/// After addCudaCode: the CPU's code of the same clusters.
mlir::LogicalResult addComparableCpuCode(mlir::ModuleOp module,
                                         const CpuTarget &target,
                                         plan::PlanT &plan,
                                         const KernelNumbers &numbers);

} // namespace meshwork::codegen
