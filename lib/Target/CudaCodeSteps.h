// The steps of compileToPtx, each tested through it.
#pragma once

#include "lib/Target/CudaCode.h"

namespace mlir {
class RewritePatternSet;
}

namespace meshwork::target {

/// Own code for functions of math, by the machine's exponential.
void populateCudaMathExpansion(mlir::RewritePatternSet &patterns);

/// Rewrites a gpu.module of kernels to the LLVM and NVVM dialects alone.
mlir::LogicalResult lowerToNvvm(mlir::gpu::GPUModuleOp kernels);

} // namespace meshwork::target
