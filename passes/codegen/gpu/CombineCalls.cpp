// Sums of a token's rows: a block for each token.
#include "passes/codegen/gpu/Calls.h"
#include "passes/codegen/gpu/StridedView.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {
constexpr int64_t lanes = 32, mostThreads = 256, sharedBytes = 48 << 10;

/// Between the sums that wait are gaps that become narrower: one for each bit
/// of a number, and one of equal numbers.
constexpr int64_t mostLevels = 34;
/// A leaf's row, its sums and its number.
constexpr int64_t leafBytes = 12;

struct Block {
  int64_t threads, vector, shared;
};

/// As many threads as have columns to add up, and fewer columns for each, or
/// fewer threads, where the sums that wait would not fit.
Block blockOf(int64_t k, int64_t width, int64_t vector) {
  int64_t leaves = llvm::alignTo(k * leafBytes, 32);
  auto bytesOf = [&](int64_t threads, int64_t columns) {
    return leaves + std::min(k, mostLevels) * threads * columns * 4;
  };
  auto threadsOf = [&](int64_t columns) {
    return std::min<int64_t>(
        mostThreads, llvm::alignTo(llvm::divideCeil(width, columns), lanes));
  };
  int64_t threads = threadsOf(vector);
  while (bytesOf(threads, vector) > sharedBytes && threads > lanes)
    threads -= lanes;
  while (bytesOf(threads, vector) > sharedBytes && vector > 1)
    vector /= 2;
  return {threads, vector, bytesOf(threads, vector)};
}
} // namespace

LogicalResult addCalls(schedule::CombineRowsOp op, DeviceCalls &result) {
  ArrayRef<int64_t> shape =
      cast<MemRefType>(op.getChoices().getType()).getShape();
  FailureOr<Rows> src = rowsOf(op, op.getSrc(), 1, "src"),
                  out = rowsOf(op, op.getOut(),
                               static_cast<int64_t>(shape.size()) - 1, "out");
  FailureOr<int64_t> places = denseCount(op, op.getPlaces(), "places"),
                     choices = denseCount(op, op.getChoices(), "choices");
  if (failed(src) || failed(out) || failed(places) || failed(choices))
    return failure();
  int64_t k = shape.back();
  Block block = blockOf(k, src->width, vectorOf(*src, *out));
  FailureOr<int64_t> grid = gridOf(op, out->count, 1);
  if (failed(grid))
    return failure();
  DeviceCall call{
      "meshwork_combine_rows", {}, *grid, block.threads, block.shared};
  call.pointer(0).pointer(1).pointer(2).pointer(3).integers(
      {block.threads, k, src->count, src->width, src->stride, out->stride,
       src->view.bytes(), out->view.bytes(), block.vector});
  result.calls.push_back(std::move(call));
  return success();
}

} // namespace meshwork::codegen
