// Products of experts: a block for each tile of the result, as many as the
// worst case has.
#include "passes/codegen/gpu/Calls.h"
#include "passes/codegen/gpu/StridedView.h"
#include "passes/codegen/gpu/library/GroupedGeometry.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {
using grouped::tileSize;

/// Rows, columns and places of a sum are i32 in a kernel, up to a tile's end.
constexpr int64_t mostElements = INT32_MAX - tileSize;

/// A matrix of each expert, with dense rows, or with dense columns where
/// `transposed`.
struct Matrices {
  StridedView view;
  bool transposed;

  int64_t experts() const { return view.shape[0]; }
  int64_t expertStride() const { return view.strides[0]; }
  int64_t lineStride() const { return view.strides[transposed ? 2 : 1]; }
  /// Elements of a line.
  int64_t length() const { return view.shape[transposed ? 1 : 2]; }
  int64_t lines() const { return view.shape[transposed ? 2 : 1]; }
  /// Whether every line, of every expert, begins at a multiple of so many
  /// bytes.
  bool beginsAt(int64_t bytes) const {
    auto fits = [&](int64_t count, int64_t stride) {
      return count == 1 || stride * view.bytes() % bytes == 0;
    };
    return view.alignBytes % bytes == 0 && fits(experts(), expertStride()) &&
           fits(lines(), lineStride());
  }
};

FailureOr<Matrices> matricesOf(Operation *op, Value value, StringRef role) {
  StridedView view = stridedView(value);
  auto isDense = [&](int64_t dim) {
    return view.shape[dim] == 1 || view.strides[dim] == 1;
  };
  if (!isDense(2) && !isDense(1))
    return op->emitOpError()
           << "has " << role << " " << value.getType()
           << ", expected stride 1 in one of the two inner dims";
  return Matrices{view, !isDense(2)};
}

/// Whether lines of `length` elements can be copied 16 bytes at a time.
template <typename Lines> bool isAligned(const Lines &lines, int64_t length) {
  return lines.beginsAt(16) && length * lines.view.bytes() % 16 == 0;
}
/// Whether two elements next to each other can be written at once.
template <typename Lines> bool isPaired(const Lines &lines, int64_t length) {
  return lines.beginsAt(2 * lines.view.bytes()) && length % 2 == 0;
}

LogicalResult checkSizes(Operation *op, std::initializer_list<int64_t> sizes) {
  int64_t most = std::max(sizes);
  if (most <= mostElements)
    return success();
  return op->emitOpError() << "has a dim of size " << most
                           << ", expected at most " << mostElements;
}

int64_t tilesOf(int64_t elements) {
  return llvm::divideCeil(elements, tileSize);
}

/// Tiles of rows, each of one expert: all but one row of a tile may be missing,
/// of each expert's and of those before and behind all.
int64_t mostRowTiles(int64_t rows, int64_t experts) {
  return std::min(rows, (rows + (experts + 2) * (tileSize - 1)) / tileSize);
}

FailureOr<DeviceCall> callOf(Operation *op, const char *function,
                             int64_t blocks, int64_t elementBytes) {
  FailureOr<int64_t> grid = gridOf(op, blocks, 1);
  if (failed(grid))
    return failure();
  DeviceCall call{function,
                  {},
                  *grid,
                  grouped::threads,
                  grouped::sharedBytes(static_cast<int>(elementBytes))};
  call.blocksAtOnce = 2;
  return call;
}
} // namespace

LogicalResult addCalls(schedule::GroupedProductOp op, DeviceCalls &result) {
  FailureOr<Rows> lhs = rowsOf(op, op.getLhs(), 1, "lhs"),
                  out = rowsOf(op, op.getOut(), 1, "out");
  FailureOr<Matrices> rhs = matricesOf(op, op.getRhs(), "rhs");
  if (failed(lhs) || failed(out) || failed(rhs) ||
      failed(denseCount(op, op.getBegins(), "begins")) ||
      failed(checkSizes(op, {lhs->count, lhs->width, out->width})))
    return failure();
  int64_t columnTiles = tilesOf(out->width), bytes = lhs->view.bytes(),
          blocks = mostRowTiles(lhs->count, rhs->experts()) * columnTiles;
  FailureOr<DeviceCall> call =
      callOf(op, "meshwork_grouped_product", blocks, bytes);
  if (failed(call))
    return failure();
  call->pointer(0).pointer(1).pointer(2).pointer(3).integers(
      {rhs->experts(), lhs->count, lhs->width, out->width, columnTiles,
       lhs->stride, rhs->expertStride(), rhs->lineStride(), out->stride,
       rhs->transposed, isAligned(*lhs, lhs->width),
       isAligned(*rhs, rhs->length()), isPaired(*out, out->width), bytes,
       out->view.bytes()});
  result.calls.push_back(std::move(*call));
  return success();
}

LogicalResult addCalls(schedule::GroupedGradientOp op, DeviceCalls &result) {
  FailureOr<Rows> down = rowsOf(op, op.getLhs(), 1, "lhs"),
                  across = rowsOf(op, op.getRhs(), 1, "rhs");
  FailureOr<Matrices> dst = matricesOf(op, op.getDst(), "dst");
  if (failed(down) || failed(across) || failed(dst) ||
      failed(denseCount(op, op.getBegins(), "begins")) ||
      failed(checkSizes(op, {down->count, down->width, across->width})))
    return failure();
  // A result with dense columns is the transpose of rhs transposed times lhs.
  int64_t first = dst->transposed ? 1 : 0;
  if (dst->transposed)
    std::swap(*down, *across);
  int64_t rowTiles = tilesOf(down->width), columnTiles = tilesOf(across->width),
          bytes = down->view.bytes();
  FailureOr<DeviceCall> call =
      callOf(op, "meshwork_grouped_gradient",
             dst->experts() * rowTiles * columnTiles, bytes);
  if (failed(call))
    return failure();
  call->pointer(first).pointer(1 - first).pointer(2).pointer(3).adds().integers(
      {dst->experts(), down->count, down->width, across->width, rowTiles,
       columnTiles, down->stride, across->stride, dst->expertStride(),
       dst->lineStride(), isAligned(*down, down->width),
       isAligned(*across, across->width), isPaired(*dst, dst->length()), bytes,
       dst->view.bytes()});
  result.calls.push_back(std::move(*call));
  return success();
}

} // namespace meshwork::codegen
