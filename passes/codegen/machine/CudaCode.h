// Kernels as a GPU's code: from a gpu.module to PTX in this process, and by
// ptxas, where there is one, to a cubin.
//
//   FailureOr<std::vector<std::string>> ptx = compileToPtx({clusters},
//   {target}); FailureOr<CudaBinary> code = assemblePtx(ptx->front(), target,
//   findPtxas(""), error);
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "passes/codegen/machine/CudaTarget.h"

namespace meshwork::codegen {

/// The kernels of one image, of gpu, scf, vector, arith, math and llvm.
struct CudaKernels {
  mlir::gpu::GPUModuleOp kernels; // that are complete
  mlir::gpu::GPUModuleOp calls; // that call functions of `library`; null: none
  /// LLVM bitcode for NVPTX, not optimized: what a call gives as constants is
  /// constant in its kernel.
  std::span<const std::string_view> library;
};

/// Lowers the modules in place to NVVM, optimizes them and returns PTX for each
/// target. No other library is there: a math function without code here is an
/// error, as is a function that `library` lacks. Equal modules and targets give
/// equal text.
mlir::FailureOr<std::vector<std::string>>
compileToPtx(const CudaKernels &kernels, llvm::ArrayRef<CudaTarget> targets);

/// What ptxas says of one kernel.
struct KernelResources {
  std::string kernel;
  int64_t registers = 0, spillBytes = 0; // spillBytes: stores and loads
};

struct CudaBinary {
  std::vector<char> cubin;
  std::vector<KernelResources> resources; // in the order of ptxas
};

/// `named` if given, else the first of: PATH, /usr/local/cuda/bin, the package
/// nvidia-cuda-nvcc of the Python environment in use. Empty when there is none.
std::string findPtxas(llvm::StringRef named);

/// On failure `error` holds ptxas' words.
mlir::FailureOr<CudaBinary> assemblePtx(llvm::StringRef ptx,
                                        const CudaTarget &target,
                                        llvm::StringRef ptxas,
                                        std::string &error);

} // namespace meshwork::codegen
