// Kernels as a GPU's code: from a gpu.module to PTX in this process, and by
// ptxas, where there is one, to a cubin.
//
//   FailureOr<std::string> ptx = compileToPtx(gpuModule, target);
//   FailureOr<CudaBinary> code = assemblePtx(*ptx, target, findPtxas(""), error);
#pragma once

#include <string>
#include <vector>

#include "lib/Target/CudaTarget.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace meshwork::target {

/// Lowers `kernels` (gpu, scf, vector, arith, math, llvm) in place to NVVM,
/// optimizes it and returns PTX. It calls no library: a math function that has
/// no code here is an error. Equal modules and targets give equal text.
mlir::FailureOr<std::string> compileToPtx(mlir::gpu::GPUModuleOp kernels, const CudaTarget &target);

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
mlir::FailureOr<CudaBinary> assemblePtx(llvm::StringRef ptx, const CudaTarget &target, llvm::StringRef ptxas, std::string &error);

} // namespace meshwork::target
