// How buffers are laid out: rows side by side, or with room behind each or
// behind the last, where products are faster with more than a tensor has.
#include "passes/schedule/Buffers.h"
#include "dialects/transformer/Dims.h"
#include "passes/codegen/Walk.h"
#include "passes/schedule/Matmul.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

static int64_t bytesOf(Type element) {
  return element.getIntOrFloatBitWidth() / 8;
}

int64_t fastExtent(int64_t size, int64_t unit) {
  constexpr int64_t enough = 8; // all kernels are there for multiples of it
  constexpr int64_t oneOf = 32; // of a size may be added
  int64_t aligned = llvm::alignTo(size, unit);
  bool isCheap = (aligned - size) * oneOf <= size;
  return size % enough != 0 && isCheap ? aligned : size;
}

static bool isMultiplied(Value value) {
  return llvm::any_of(
             value.getUsers(),
             [](Operation *op) { return productOf(op).has_value(); }) ||
         (value.getDefiningOp() && productOf(value.getDefiningOp()));
}

Place Buffers::make(const Twine &name, BufferKind kind, bool isPersistent,
                    ArrayRef<int64_t> shape, Type element, int64_t rowElements,
                    bool mayGrow) {
  constexpr int64_t narrowest = 2; // bytes of an element of odd matrices
  SmallVector<int64_t> stored(shape);
  if (rowElements > 0)
    stored.back() = rowElements;
  if (mayGrow && rowBytes > 0 && shape.size() == 2)
    stored.front() = fastExtent(shape.front(), rowBytes / narrowest);
  int64_t bytes = bytesOf(element);
  for (int64_t size : stored)
    bytes *= size;
  if (!firstList) // Buffers are many, and looking past them each time is slow.
    firstList = *program.getBody().getOps<ListOp>().begin();
  builder.setInsertionPoint(firstList);
  auto op = BufferOp::create(
      builder, program.getLoc(), MemRefType::get({bytes}, builder.getI8Type()),
      name.str(), kind, isPersistent, /*on_host=*/false,
      /*offset=*/IntegerAttr(), /*copies=*/IntegerAttr());
  if (stored != SmallVector<int64_t>(shape)) {
    auto rowsOf = [](ArrayRef<int64_t> sizes) {
      return ShapedType::getNumElements(sizes.drop_back());
    };
    rooms[op.getResult()] = {rowsOf(shape), shape.back(), rowsOf(stored),
                             stored.back()};
  }
  return {op.getResult(), 0, SmallVector<int64_t>(shape),
          codegen::rowMajor(stored), element};
}

Place Buffers::persistent(const Twine &name, BufferKind kind,
                          ArrayRef<int64_t> shape, Type element, bool mayGrow) {
  return make(name, kind, true, shape, element, 0, mayGrow);
}

Place Buffers::reducedGradient(RankedTensorType type) {
  return persistent("reduced gradient", BufferKind::gradients, type.getShape(),
                    type.getElementType());
}

Place Buffers::copyOfWeight(Value value) {
  auto type = tensorType(value);
  return make("weight of the step", BufferKind::weights, true, type.getShape(),
              type.getElementType(), rowElementsOf(value), isMultiplied(value));
}

Place Buffers::temporary(Value value) {
  auto type = tensorType(value);
  bool isScratch = isOfChunks(type);
  return make("t" + Twine(numTemporaries++),
              isScratch ? BufferKind::workspace : BufferKind::activations,
              false, type.getShape(), type.getElementType(),
              isScratch ? 0 : rowElementsOf(value),
              !isScratch && isMultiplied(value));
}

Place Buffers::temporary(const Place &place, ArrayRef<int64_t> order) {
  auto shape =
      llvm::map_to_vector(order, [&](int64_t dim) { return place.shape[dim]; });
  Place result = make("t" + Twine(numTemporaries++), BufferKind::activations,
                      false, shape, place.element);
  auto strides = result.strides;
  result.shape = place.shape;
  for (auto [dim, stride] : llvm::zip_equal(order, strides))
    result.strides[dim] = stride;
  return result;
}

Place Buffers::gathered(Value value) {
  auto type = tensorType(value);
  return make("t" + Twine(numTemporaries++), BufferKind::communication, false,
              type.getShape(), type.getElementType(), 0, isMultiplied(value));
}

bool Buffers::hasRoom(const Place &loops, int64_t loop, int64_t size) const {
  auto known = rooms.find(loops.buffer);
  bool isWhole = loops.offset == 0 && loops.shape[0] == 1 &&
                 loops.shifts.empty() && loops.advances.empty();
  if (known == rooms.end() || !isWhole)
    return false;
  const Room &room = known->second;
  int64_t other = loop == 1 ? 2 : 1;
  if (loops.strides[loop] == 1)
    return loops.strides[other] == room.storedRow &&
           loops.shape[loop] == room.row && size <= room.storedRow;
  return loops.strides[loop] == room.storedRow && loops.strides[other] == 1 &&
         loops.shape[loop] == room.rows && size <= room.storedRows;
}

/// From the begin of one row of a temporary to that of the next; 0: side by
/// side. Only for products in all of which a row is a loop of its own.
int64_t Buffers::rowElementsOf(Value value) const {
  constexpr int64_t aligned = 16;
  auto type = tensorType(value);
  if (rowBytes == 0 || type.getRank() < 2)
    return 0;
  int64_t row = type.getShape().back(), width = bytesOf(type.getElementType());
  if (row * width % aligned == 0)
    return 0;
  SmallVector<Operation *> all(value.getUsers());
  if (Operation *producer = value.getDefiningOp())
    all.push_back(producer);
  bool multiplied = false;
  for (Operation *op : all)
    if (std::optional<ProductParts> product = productOf(op)) {
      multiplied = true;
      if (!hasRowsOfItsOwn(*product, value))
        return 0;
    }
  return multiplied ? llvm::alignTo(row * width, rowBytes) / width : 0;
}

} // namespace meshwork::schedule
