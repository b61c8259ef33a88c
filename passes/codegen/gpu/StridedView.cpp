#include "passes/codegen/gpu/StridedView.h"

#include "passes/codegen/KernelSpecs.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
namespace meshwork::codegen {

StridedView stridedView(Value value) {
  auto type = cast<MemRefType>(value.getType());
  StridedView view{type.getElementType(),
                   SmallVector<int64_t>(type.getShape()),
                   {},
                   alignmentOfView(value)};
  int64_t unused;
  if (failed(type.getStridesAndOffset(view.strides, unused)))
    llvm_unreachable("verified by schedule.view");
  return view;
}

FailureOr<Run> collapse(Operation *op, const StridedView &view, int64_t first,
                        int64_t last, StringRef role) {
  Run run;
  // From the innermost dim out; dims of size one place no element.
  for (int64_t dim = last - 1; dim >= first; --dim) {
    if (view.shape[dim] == 1)
      continue;
    if (run.count == 1)
      run.stride = view.strides[dim];
    else if (view.strides[dim] != run.count * run.stride)
      return op->emitOpError()
             << "has " << role << " of shape [" << view.shape
             << "] with strides [" << view.strides << "], expected dims "
             << first << " to " << last - 1
             << " to follow each other without gaps";
    run.count *= view.shape[dim];
  }
  return run;
}

FailureOr<int64_t> gridOf(Operation *op, int64_t threads, int64_t block) {
  int64_t blocks = llvm::divideCeil(threads, block);
  if (blocks > INT32_MAX)
    return op->emitOpError() << "needs " << blocks
                             << " blocks, expected fewer than 2^31 on a GPU";
  return blocks;
}

} // namespace meshwork::codegen
