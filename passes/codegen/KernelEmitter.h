// From a cluster of fusion to one native function.
//
//   KernelSpec spec = contiguousSpec(op, "rms_norm_0");
//   if (failed(emitKernel(spec, kernels, target))) ...
//   launch.items = countItems(op);
//
// The function has the ABI of `Kernel` in include/meshwork/Plan/Plan.fbs:
//   void kernel(void *const *args, int64_t begin, int64_t end)
// args: pointers to the first elements of the operands, then of the results.
#pragma once

#include <string>

#include "dialects/transformer/Transformer.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/codegen/machine/CpuTarget.h"

namespace meshwork::codegen {

/// Where a tensor's elements are: one stride (in elements) per dim. The first
/// element's address is a multiple of `alignBytes` (read by the GPU's emitter).
struct Layout {
  llvm::SmallVector<int64_t> strides;
  int64_t alignBytes = 16;
};

/// One kernel to emit. A result may lie exactly where an operand of its type
/// lies, unless a `roll` reads that operand; other overlaps of results with
/// operands or with each other are not allowed.
struct KernelSpec {
  transformer::FusedOp op;
  llvm::SmallVector<Layout> inputs, results;
  std::string symbol;
};

/// Row-major strides of a tensor type of static shape.
Layout contiguousLayout(mlir::Type type);
/// All operands and results row-major.
KernelSpec contiguousSpec(transformer::FusedOp op, llvm::StringRef symbol);

/// Work items of a cluster's kernel: the number of chunks when it has chunk
/// results, else blocks of rows, else (no rows) blocks of columns. At least 1.
uint64_t countItems(transformer::FusedOp op);

/// Additions, multiplications, divisions, maxima and functions (exp: one) of
/// one run, each as often as the kernel evaluates it; conversions and choices
/// count as none. Before any value is computed again for want of room to keep
/// it.
uint64_t countFlops(transformer::FusedOp op);

/// Appends `spec` as a function of scf, vector, arith, math and llvm to
/// `module`, whose context must have these dialects (loadKernelDialects).
/// Errors, at the op: a dim without a static size, a storage type other than
/// f32, bf16 and i32, and shapes of clusters that have no walk (README.md).
mlir::LogicalResult emitKernel(const KernelSpec &spec, mlir::ModuleOp module,
                               const CpuTarget &target);

/// Loads what emitKernel's functions consist of.
void loadKernelDialects(mlir::MLIRContext &context);

} // namespace meshwork::codegen
