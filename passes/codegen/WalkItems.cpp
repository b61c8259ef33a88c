// Work items: a function of the cluster alone, not of where its tensors lie.
#include "passes/codegen/Walk.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;
namespace {
/// Rows of one item hold about this many elements: little enough to share rows
/// among threads, enough to make the call of an item cheap.
constexpr int64_t elementsPerItem = 4096;

/// Product of the sizes of `names` in the types of the cluster's values.
int64_t sizeOf(FusedOp op, DimsAttr names) {
  llvm::SmallDenseMap<StringAttr, int64_t> sizes;
  auto note = [&](Type type) {
    for (auto [name, size] : llvm::zip_equal(
             dimsOf(type).getNames(), cast<RankedTensorType>(type).getShape()))
      sizes.try_emplace(name, size);
  };
  for (Type type : op.getInputs().getTypes())
    note(type);
  for (Operation &inner : op.getBody().front())
    for (Type type : inner.getResultTypes())
      note(type);
  int64_t product = 1;
  for (StringAttr name : names.getNames()) {
    auto size = sizes.find(name);
    if (size != sizes.end() &&
        llvm::MulOverflow(product, std::max<int64_t>(1, size->second), product))
      return INT64_MAX; // planWalk reports it
  }
  return product;
}

int64_t chunksOf(FusedOp op) {
  auto yield = cast<YieldOp>(op.getBody().front().getTerminator());
  for (auto [value, result] :
       llvm::zip_equal(yield.getValues(), op.getResults()))
    if (value.getType() != result.getType())
      return tensorType(result).getDimSize(0);
  return 0;
}

/// Whether a value per row exists: then a row, here all columns, is one item.
bool reducesColumns(FusedOp op) {
  return llvm::any_of(
      op.getBody().front().getOps<ReduceOp>(), [&](ReduceOp reduce) {
        return llvm::any_of(reduce.getDims().getNames(), [&](StringAttr name) {
          return op.getCols().find(name) >= 0;
        });
      });
}
} // namespace

/// See Walk: rowsPerItem is only meaningful for blocks of rows.
ItemCount countWalkItems(FusedOp op) {
  if (int64_t chunks = chunksOf(op))
    return {Split::chunks, chunks, 1};
  int64_t rows = sizeOf(op, op.getRows()), cols = sizeOf(op, op.getCols());
  if (!op.getRows().getNames().empty()) {
    int64_t perItem = std::max<int64_t>(1, elementsPerItem / cols);
    return {Split::rowBlocks, (rows - 1) / perItem + 1, perItem};
  }
  if (reducesColumns(op))
    return {Split::rowBlocks, 1, 1};
  return {Split::columnBlocks, (cols - 1) / columnsPerItem + 1, 1};
}

uint64_t countItems(FusedOp op) { return countWalkItems(op).items; }

} // namespace meshwork::codegen
