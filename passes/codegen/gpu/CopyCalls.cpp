// Copies of blocks, and fills.
#include <cmath>
#include <numeric>

#include "passes/codegen/gpu/Calls.h"
#include "passes/codegen/gpu/StridedView.h"
#include "llvm/ADT/APFloat.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {

/// A tensor as [outer, dim, inner].
struct Slab {
  StridedView view;
  Run outer, dim, inner;
};

FailureOr<Slab> slabOf(Operation *op, Value value, int64_t dim,
                       StringRef role) {
  StridedView view = stridedView(value);
  FailureOr<Run> outer = collapse(op, view, 0, dim, role),
                 inner = collapse(op, view, dim + 1, view.rank(), role);
  if (failed(outer) || failed(inner))
    return failure();
  return Slab{view, *outer, {view.shape[dim], view.strides[dim]}, *inner};
}

/// Bytes of the words, at most 16, that both tensors' inner runs consist of.
int64_t wordBytes(const Slab &src, const Slab &dst) {
  int64_t bytes = src.view.bytes(),
          word = std::gcd<int64_t>(16, dst.inner.count * bytes);
  for (const Slab *slab : {&src, &dst}) {
    if (slab->inner.count > 1 && slab->inner.stride != 1)
      return bytes;
    word = std::gcd(word, slab->view.alignBytes);
    for (const Run &run : {slab->outer, slab->dim})
      if (run.count > 1)
        word = std::gcd(word, run.stride * bytes);
  }
  return std::max(word, bytes);
}
} // namespace

LogicalResult addCalls(schedule::CopyBlockOp op, DeviceCalls &result) {
  auto dim = static_cast<int64_t>(op.getDim());
  FailureOr<Slab> src = slabOf(op, op.getSrc(), dim, "src"),
                  dst = slabOf(op, op.getDst(), dim, "dst");
  if (failed(src) || failed(dst))
    return failure();
  int64_t bytes = src->view.bytes(), word = wordBytes(*src, *dst),
          words = dst->inner.count * bytes / word;
  DeviceCall call{"meshwork_copy_block", {}};
  FailureOr<int64_t> grid =
      gridOf(op, dst->outer.count * dst->dim.count * words, call.block);
  if (failed(grid))
    return failure();
  call.grid = *grid;
  auto strideOfWord = [&](const Slab &slab) {
    return word > bytes ? word : slab.inner.stride * bytes;
  };
  call.pointer(0).pointer(1).pointer(2).integers(
      {call.block, dst->outer.count, dst->dim.count, words, src->dim.count});
  for (const Slab *slab : {&*src, &*dst})
    call.integers({slab->outer.stride * bytes, slab->dim.stride * bytes,
                   strideOfWord(*slab)});
  call.integers({word});
  result.calls.push_back(std::move(call));
  return success();
}

LogicalResult addCalls(schedule::FillOp op, DeviceCalls &result) {
  StridedView view = stridedView(op.getDst());
  int64_t inner = view.rank() == 2 ? 1 : 0; // the first dim of a row
  FailureOr<Run> rows = collapse(op, view, 0, inner, "dst"),
                 dense = collapse(op, view, inner, view.rank(), "dst");
  if (failed(rows) || failed(dense))
    return failure();
  if (dense->count > 1 && dense->stride != 1)
    return op.emitOpError()
           << "fills " << op.getDst().getType() << ", expected dense elements";
  if (rows->stride == dense->count) { // one after the other
    dense->count *= rows->count;
    *rows = {};
  }
  llvm::APFloat value = op.getValue();
  float number = value.convertToFloat();
  uint32_t pattern;
  if (view.element.isBF16()) {
    bool losesInfo;
    value.convert(llvm::APFloat::BFloat(), llvm::APFloat::rmNearestTiesToEven,
                  &losesInfo);
    pattern =
        static_cast<uint32_t>(value.bitcastToAPInt().getZExtValue()) * 0x10001u;
  } else if (view.element.isF32()) {
    pattern = static_cast<uint32_t>(value.bitcastToAPInt().getZExtValue());
  } else {
    pattern = static_cast<uint32_t>(static_cast<int32_t>(number));
  }
  FilledBytes bytes{rows->count,
                    rows->count == 1 ? 0 : rows->stride * view.bytes(),
                    dense->count * view.bytes(), view.alignBytes, view.bytes()};
  return addFill(op, 0, bytes, pattern, result);
}

LogicalResult addFill(Operation *op, int64_t operand, const FilledBytes &of,
                      uint32_t pattern, DeviceCalls &result) {
  constexpr int64_t widest = 16;
  bool isWide = of.alignBytes % widest == 0 && of.rowStride % widest == 0;
  int64_t word = isWide ? widest : of.elementBytes;
  DeviceCall call{"meshwork_fill", {}};
  FailureOr<int64_t> grid =
      gridOf(op, of.rows * llvm::divideCeil(of.bytes, word), call.block);
  if (failed(grid))
    return failure();
  call.grid = *grid;
  call.pointer(operand).integers(
      {call.block, of.rows, of.rowStride, of.bytes, pattern, word});
  result.calls.push_back(std::move(call));
  return success();
}

} // namespace meshwork::codegen
