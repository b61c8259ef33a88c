// The clusters of a module as specs of kernels.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "passes/codegen/KernelEmitter.h"

namespace meshwork::codegen {

/// Kernel functions of a schedule with their layouts, by name, and how their
/// arguments are aligned in all launches; in a module without any, every
/// cluster, contiguous, as kernel_0, kernel_1, ...
std::vector<KernelSpec> kernelSpecsOf(mlir::ModuleOp module);

/// Bytes that the first element of a schedule's view lies at a multiple of, on
/// every rank.
int64_t alignmentOfView(mlir::Value view);

} // namespace meshwork::codegen
