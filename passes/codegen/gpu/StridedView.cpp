#include "passes/codegen/gpu/StridedView.h"

#include <numeric>

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

bool Rows::beginsAt(int64_t bytes) const {
  return view.alignBytes % bytes == 0 &&
         (count == 1 || stride * view.bytes() % bytes == 0);
}

FailureOr<Rows> rowsOf(Operation *op, Value value, int64_t split,
                       StringRef role) {
  StridedView view = stridedView(value);
  split += split < 0 ? view.rank() : 0;
  FailureOr<Run> outer = collapse(op, view, 0, split, role),
                 inner = collapse(op, view, split, view.rank(), role);
  if (failed(outer) || failed(inner))
    return failure();
  if (inner->count > 1 && inner->stride != 1)
    return op->emitOpError() << "has " << role << " " << value.getType()
                             << ", expected dense rows";
  return Rows{view, outer->count, inner->count, outer->stride};
}

FailureOr<int64_t> denseCount(Operation *op, Value value, StringRef role) {
  StridedView view = stridedView(value);
  FailureOr<Run> run = collapse(op, view, 0, view.rank(), role);
  if (failed(run))
    return failure();
  if (run->count > 1 && run->stride != 1)
    return op->emitOpError() << "has " << role << " " << value.getType()
                             << ", expected dense i32";
  return run->count;
}

int64_t vectorOf(const Rows &a, const Rows &b) {
  int64_t columns =
      std::gcd(16 / std::min(a.view.bytes(), b.view.bytes()), a.width);
  // Wide elements take two accesses of 16 bytes.
  auto fits = [&](const Rows &rows) {
    return rows.beginsAt(std::min<int64_t>(16, columns * rows.view.bytes()));
  };
  while (columns > 1 && (!fits(a) || !fits(b)))
    columns /= 2;
  return columns;
}

FailureOr<int64_t> gridOf(Operation *op, int64_t threads, int64_t block) {
  int64_t blocks = llvm::divideCeil(threads, block);
  if (blocks > INT32_MAX)
    return op->emitOpError() << "needs " << blocks
                             << " blocks, expected fewer than 2^31 on a GPU";
  return blocks;
}

} // namespace meshwork::codegen
