// The steps of compileToPtx, each tested through it.
#pragma once

#include "passes/codegen/machine/CudaCode.h"

namespace mlir {
class RewritePatternSet;
}
namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace meshwork::codegen {

/// Own code for functions of math, by the machine's exponential.
void populateCudaMathExpansion(mlir::RewritePatternSet &patterns);

/// Quotients by the machine's approximate ones, after what the above makes.
void approximateQuotients(mlir::gpu::GPUModuleOp kernels);

/// Rewrites a gpu.module of kernels to the LLVM and NVVM dialects alone.
mlir::LogicalResult lowerToNvvm(mlir::gpu::GPUModuleOp kernels);

/// Links what `module` calls of `library` into it, inlines it and optimizes the
/// callers, of which nothing is expected before. `error` names a function that
/// the library lacks.
mlir::LogicalResult linkLibrary(llvm::Module &module,
                                std::span<const std::string_view> library,
                                llvm::TargetMachine &machine,
                                std::string &error);

} // namespace meshwork::codegen
