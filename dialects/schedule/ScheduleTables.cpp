// Verifiers of launches, and of what looks up, fills and copies.
#include "dialects/schedule/Views.h"
#include <cmath>

using namespace mlir;

namespace meshwork::schedule {

LogicalResult LaunchOp::verify() {
  auto outputs = static_cast<int64_t>(getNumOutputs()),
       items = static_cast<int64_t>(getItems()),
       args = static_cast<int64_t>(getArgs().size());
  if (outputs < 1 || outputs > args || items < 1)
    return emitOpError() << "(C1) writes " << outputs << " of " << args
                         << " args with " << items
                         << " items, expected at least one of each";
  return success();
}

/// `rows` of `table`, one for each of `ids`.
static LogicalResult verifyRows(Operation *op, Value table, Value ids,
                                Value rows, Value firstRow) {
  Strided whole(table), index(ids), many(rows);
  Type i32 = IntegerType::get(op->getContext(), 32);
  if (index.element() != i32)
    return op->emitOpError()
           << "(C1) has ids " << index.type << ", expected i32";
  SmallVector<int64_t> shape(index.shape);
  if (whole.rank() >= 2)
    llvm::append_range(shape, whole.shape.drop_front());
  if (whole.rank() < 2 || !whole.isWideFloat() || !many.isWideFloat() ||
      many.shape != ArrayRef(shape))
    return op->emitOpError()
           << "(C2) has the table " << whole.type << ", ids " << index.type
           << " and rows " << many.type
           << ", expected f32 or bf16, a table of 2 dims or more, and one of "
              "its rows for each id";
  if (firstRow && !Strided(firstRow).isNumber(i32))
    return op->emitOpError() << "(C3) has the first row " << firstRow.getType()
                             << ", expected one i32";
  return success();
}

LogicalResult EmbeddingOp::verify() {
  return verifyRows(*this, getTable(), getIds(), getOut(), getFirstRow());
}

LogicalResult EmbeddingGradOp::verify() {
  return verifyRows(*this, getDtable(), getIds(), getDout(), getFirstRow());
}

LogicalResult RotaryTableOp::verify() {
  auto columns = static_cast<int64_t>(2 * getInverseFrequencies().size());
  Strided cos(getCos()), sin(getSin());
  if (cos.rank() != 2 || cos.shape[1] != columns || !cos.element().isF32() ||
      !sin.has(cos.element(), cos.shape) || !cos.isContiguous() ||
      !sin.isContiguous())
    return emitOpError() << "(C1) fills " << cos.type << " and " << sin.type
                         << ", expected f32 [sequence, " << columns
                         << "] without gaps";
  bool isFinite = getScale().isFinite();
  for (float frequency : getInverseFrequencies())
    isFinite &= std::isfinite(frequency);
  if (!isFinite)
    return emitOpError()
           << "(C2) has a frequency or a scale that is not finite";
  if (!getPositions())
    return success();
  Strided positions(getPositions());
  if (!positions.has(IntegerType::get(getContext(), 32),
                     cos.shape.take_front()) ||
      !positions.isContiguous())
    return emitOpError() << "(C3) has positions " << positions.type
                         << ", expected i32 [" << cos.shape[0]
                         << "] without gaps";
  return success();
}

LogicalResult FillOp::verify() {
  float value = getValue().convertToFloat();
  bool isWhole = value >= -2147483648.0f && value < 2147483648.0f &&
                 value == std::trunc(value);
  if (!isWhole && !Strided(getDst()).isWideFloat())
    return emitOpError() << "(C1) fills " << getDst().getType() << " with "
                         << value << ", expected a whole number of 32 bits";
  Strided dst(getDst());
  if (dst.rank() == 2 ? dst.shape[1] > 1 && dst.strides[1] != 1
                      : !dst.isContiguous())
    return emitOpError() << "(C2) fills " << getDst().getType()
                         << ", expected elements side by side, or rows of such";
  return success();
}

LogicalResult CopyBlockOp::verify() {
  Strided src(getSrc()), dst(getDst());
  auto dim = static_cast<int64_t>(getDim());
  bool hasDim = dim >= 0 && dim < std::min(src.rank(), dst.rank());
  SmallVector<int64_t> shape(src.shape);
  if (hasDim)
    shape[dim] = dst.shape[dim];
  if (!hasDim || !dst.has(src.element(), shape))
    return emitOpError() << "(C1) copies " << src.type << " to " << dst.type
                         << " along dim " << dim
                         << ", expected one element type, and shapes that "
                            "differ along a dim of both";
  if (bufferOf(getSrc()) == bufferOf(getDst()))
    return emitOpError() << "(C2) copies within buffer "
                         << bufferOf(getSrc()).getNameAttr()
                         << ", expected two";
  if (!Strided(getFirst()).isNumber(IntegerType::get(getContext(), 32)))
    return emitOpError() << "(C3) begins at " << getFirst().getType()
                         << ", expected one i32";
  return success();
}

} // namespace meshwork::schedule
