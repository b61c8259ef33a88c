// How buffers are laid out: rows side by side, or with room behind each or
// behind the last, where products are faster with more than a tensor has.
#include "passes/schedule/Matmul.h"
#include "passes/schedule/Placement.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

static SmallVector<int64_t> rowMajor(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t i = static_cast<int64_t>(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

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

Place Placement::buffer(StringRef name, BufferKind kind, bool isPersistent,
                        ArrayRef<int64_t> shape, Type element,
                        int64_t rowElements, bool mayGrow) {
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
  auto op = BufferOp::create(builder, loc,
                             MemRefType::get({bytes}, builder.getI8Type()),
                             name, kind, isPersistent, IntegerAttr(),
                             /*copies=*/IntegerAttr());
  if (stored != SmallVector<int64_t>(shape)) {
    auto rowsOf = [](ArrayRef<int64_t> sizes) {
      return ShapedType::getNumElements(sizes.drop_back());
    };
    rooms[op.getResult()] = {rowsOf(shape), shape.back(), rowsOf(stored),
                             stored.back()};
  }
  return {op.getResult(), 0, SmallVector<int64_t>(shape), rowMajor(stored),
          element};
}

bool Placement::hasRoom(const Place &loops, int64_t loop, int64_t size) const {
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

bool Placement::isMultiplied(Value value) const {
  return llvm::any_of(
             value.getUsers(),
             [](Operation *op) { return productOf(op).has_value(); }) ||
         (value.getDefiningOp() && productOf(value.getDefiningOp()));
}

/// From the begin of one row of a temporary to that of the next; 0: side by
/// side. Only for products in all of which a row is a loop of its own.
int64_t Placement::rowElementsOf(Value value) const {
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
