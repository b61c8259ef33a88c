// Rows of a table by index, and the gradient of that.
#include <numeric>

#include "meshwork/Plan/Gpu.h"
#include "passes/codegen/gpu/Calls.h"
#include "passes/codegen/gpu/StridedView.h"
#include "passes/codegen/gpu/library/EmbeddingGradGeometry.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {

/// `count` dense rows of `width` elements, `stride` apart.
struct Rows {
  StridedView view;
  int64_t count, width, stride;
};

/// Splits `view` before dim `split`.
FailureOr<Rows> rowsOf(Operation *op, Value value, int64_t split,
                       StringRef role) {
  StridedView view = stridedView(value);
  FailureOr<Run> outer = collapse(op, view, 0, split, role),
                 inner = collapse(op, view, split, view.rank(), role);
  if (failed(outer) || failed(inner))
    return failure();
  if (inner->count > 1 && inner->stride != 1)
    return op->emitOpError() << "has " << role << " " << value.getType()
                             << ", expected dense rows";
  return Rows{view, outer->count, inner->count, outer->stride};
}

struct Lookup {
  Rows table, many;
  int64_t numIds = 0;

  /// Columns that one thread takes at once: 16 bytes of the smaller elements,
  /// as far as widths, strides and alignments allow.
  int64_t vector() const {
    int64_t columns = std::gcd(
        16 / std::min(table.view.bytes(), many.view.bytes()), table.width);
    for (const Rows *rows : {&table, &many}) {
      // Wide elements take two accesses of 16 bytes.
      auto misfits = [&](int64_t bytes) {
        return bytes % std::min<int64_t>(16, columns * rows->view.bytes()) != 0;
      };
      while (columns > 1 &&
             (misfits(rows->view.alignBytes) ||
              (rows->count > 1 && misfits(rows->stride * rows->view.bytes()))))
        columns /= 2;
    }
    return columns;
  }
};

FailureOr<Lookup> lookupOf(Operation *op, Value table, Value ids, Value many,
                           StringRef tableRole, StringRef manyRole) {
  StridedView indices = stridedView(ids);
  FailureOr<Run> dense = collapse(op, indices, 0, indices.rank(), "ids");
  FailureOr<Rows> tableRows = rowsOf(op, table, 1, tableRole),
                  manyRows = rowsOf(op, many, indices.rank(), manyRole);
  if (failed(dense) || failed(tableRows) || failed(manyRows))
    return failure();
  if (dense->count > 1 && dense->stride != 1)
    return op->emitOpError()
           << "has ids " << ids.getType() << ", expected dense i32";
  return Lookup{*tableRows, *manyRows, dense->count};
}
} // namespace

LogicalResult addCalls(schedule::EmbeddingOp op, DeviceCalls &result) {
  FailureOr<Lookup> lookup =
      lookupOf(op, op.getTable(), op.getIds(), op.getOut(), "table", "out");
  if (failed(lookup))
    return failure();
  const Rows &table = lookup->table, &out = lookup->many;
  bool isShard = bool(op.getFirstRow());
  DeviceCall call{"meshwork_embedding", {}};
  FailureOr<int64_t> grid =
      gridOf(op, lookup->numIds * (table.width / lookup->vector()), call.block);
  if (failed(grid))
    return failure();
  call.grid = *grid;
  call.pointer(0).pointer(1).pointerIf(isShard, 2).pointer(isShard ? 3 : 2);
  call.integers({isShard, call.block, lookup->numIds, table.width, table.count,
                 table.stride, out.stride, table.view.bytes(), out.view.bytes(),
                 lookup->vector()});
  result.calls.push_back(std::move(call));
  return success();
}

LogicalResult addCalls(schedule::EmbeddingGradOp op, DeviceCalls &result) {
  FailureOr<Lookup> lookup =
      lookupOf(op, op.getDtable(), op.getIds(), op.getDout(), "dtable", "dout");
  if (failed(lookup))
    return failure();
  const Rows &table = lookup->table, &dout = lookup->many;
  for (auto [what, count] :
       {std::pair("ids", lookup->numIds), std::pair("rows", table.count),
        std::pair("columns", table.width)})
    if (count > plan::mostTableSize)
      return op.emitOpError() << "has " << count << " " << what
                              << ", expected at most " << plan::mostTableSize;
  bool isShard = bool(op.getFirstRow());
  int64_t vector = lookup->vector(),
          blocks = embeddingGrad::blocksFor(table.count);
  int64_t team = std::min<int64_t>(
      embeddingGrad::threads,
      llvm::alignTo(llvm::divideCeil(table.width, vector), 32));
  DeviceCall call{
      "meshwork_embedding_grad",
      {},
      blocks,
      embeddingGrad::threads,
      embeddingGrad::sharedBytes(llvm::divideCeil(table.count, blocks))};
  call.blocksAtOnce = embeddingGrad::blocksAtOnce;
  call.pointer(0)
      .pointer(1)
      .pointerIf(isShard, 2)
      .pointer(isShard ? 3 : 2)
      .adds();
  call.integers({isShard, blocks, team, lookup->numIds, table.width,
                 table.count, dout.stride, table.stride, dout.view.bytes(),
                 table.view.bytes(), vector});
  result.calls.push_back(std::move(call));
  return success();
}

} // namespace meshwork::codegen
