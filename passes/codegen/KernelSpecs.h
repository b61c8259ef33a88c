// What a module launches, as specs of kernels.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "passes/codegen/KernelEmitter.h"

namespace meshwork::codegen {

/// A cluster in a launch, and which of the launch's arguments are its operands
/// and results.
struct LaunchPart {
  size_t cluster; // of KernelSpecs
  llvm::SmallVector<unsigned> args;
};

/// What one launch runs: clusters that need nothing of each other, mostly one.
struct LaunchSpec {
  std::string symbol;
  size_t numArgs;
  llvm::SmallVector<LaunchPart, 1> parts;
};

/// A launch of nothing but the cluster numbered `index`.
LaunchSpec launchOf(const KernelSpec &cluster, size_t index);

struct KernelSpecs {
  std::vector<KernelSpec> clusters;
  std::vector<LaunchSpec> launches;
};

/// Kernel functions of a schedule with their layouts, and how their arguments
/// are aligned in all launches; in a module without any, every cluster,
/// contiguous, as kernel_0, kernel_1, ... A function that calls kernels
/// (-schedule-merge-launches) is a launch of several clusters; what only such
/// functions call is no launch of its own.
KernelSpecs kernelSpecsOf(mlir::ModuleOp module);

/// Work items of a launch: those of its clusters, one after the other.
uint64_t countItems(const LaunchSpec &launch, const KernelSpecs &specs);

/// How many bytes each argument spans for the launch's code, from its first
/// element to past its last.
llvm::SmallVector<uint64_t> argBytesOf(const LaunchSpec &launch,
                                       const KernelSpecs &specs);

/// Appends all of them to `module` as emitKernel does. A launch of several
/// clusters has their items, one after the other.
mlir::LogicalResult emitKernels(const KernelSpecs &specs, mlir::ModuleOp module,
                                const CpuTarget &target);

/// Bytes that the first element of a schedule's view lies at a multiple of, on
/// every rank.
int64_t alignmentOfView(mlir::Value view);

} // namespace meshwork::codegen
