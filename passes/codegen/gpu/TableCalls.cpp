// Rows of a table by index, and the gradient of that.
#include "meshwork/Plan/Gpu.h"
#include "passes/codegen/gpu/Calls.h"
#include "passes/codegen/gpu/StridedView.h"
#include "passes/codegen/gpu/library/EmbeddingGradGeometry.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {

struct Lookup {
  Rows table, many;
  int64_t numIds = 0;

  int64_t vector() const { return vectorOf(table, many); }
};

FailureOr<Lookup> lookupOf(Operation *op, Value table, Value ids, Value many,
                           StringRef tableRole, StringRef manyRole) {
  FailureOr<int64_t> numIds = denseCount(op, ids, "ids");
  int64_t dims = cast<MemRefType>(ids.getType()).getRank();
  FailureOr<Rows> tableRows = rowsOf(op, table, 1, tableRole),
                  manyRows = rowsOf(op, many, dims, manyRole);
  if (failed(numIds) || failed(tableRows) || failed(manyRows))
    return failure();
  return Lookup{*tableRows, *manyRows, *numIds};
}

/// `absent` fills rows that are not there. Numbers of i32 pass as f32, whose
/// bits nobody changes.
LogicalResult addLookup(Operation *op, const FailureOr<Lookup> &lookup,
                        bool hasFirst, float absent, DeviceCalls &result) {
  if (failed(lookup))
    return failure();
  const Rows &table = lookup->table, &out = lookup->many;
  DeviceCall call{"meshwork_embedding", {}};
  FailureOr<int64_t> grid =
      gridOf(op, lookup->numIds * (table.width / lookup->vector()), call.block);
  if (failed(grid))
    return failure();
  call.grid = *grid;
  call.pointer(0).pointer(1).pointerIf(hasFirst, 2).pointer(hasFirst ? 3 : 2);
  call.integers({hasFirst, call.block, lookup->numIds, table.width, table.count,
                 table.stride, out.stride, table.view.bytes(), out.view.bytes(),
                 lookup->vector(), llvm::bit_cast<int32_t>(absent)});
  result.calls.push_back(std::move(call));
  return success();
}
} // namespace

LogicalResult addCalls(schedule::EmbeddingOp op, DeviceCalls &result) {
  FailureOr<Lookup> lookup =
      lookupOf(op, op.getTable(), op.getIds(), op.getOut(), "table", "out");
  bool isShard = bool(op.getFirstRow());
  return addLookup(op, lookup, isShard,
                   isShard ? 0 : std::numeric_limits<float>::quiet_NaN(),
                   result);
}

LogicalResult addCalls(schedule::TakeRowsOp op, DeviceCalls &result) {
  FailureOr<Lookup> lookup =
      lookupOf(op, op.getTable(), op.getRows(), op.getOut(), "table", "out");
  bool isOfNumbers =
      succeeded(lookup) && lookup->table.view.element.isInteger(32);
  return addLookup(op, lookup, /*hasFirst=*/false,
                   isOfNumbers ? llvm::bit_cast<float>(-1) : 0, result);
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
