// What is done to one part of tensors after the other.
#include "dialects/transformer/Transformer.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
namespace meshwork::transformer {

/// Whether a whole can be cut in `times` parts along `dim`.
static bool isCut(Type whole, StringAttr dim, int64_t times) {
  int64_t position = dimsOf(whole).find(dim);
  return position >= 0 &&
         cast<RankedTensorType>(whole).getDimSize(position) % times == 0;
}

RankedTensorType RepeatOp::partOf(Type whole) {
  auto type = cast<RankedTensorType>(whole);
  SmallVector<int64_t> shape(type.getShape());
  shape[dimsOf(type).find(getDimAttr())] /= static_cast<int64_t>(getTimes());
  return RankedTensorType::get(shape, type.getElementType(),
                               type.getEncoding());
}

void RepeatOp::shareCaptured() {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(getBody(), captured);
  for (Value value : captured) {
    Value argument = getBody().addArgument(value.getType(), value.getLoc());
    replaceAllUsesInRegionWith(value, argument, getBody());
  }
  getSharedMutable().append(captured.getArrayRef());
}

LogicalResult RepeatOp::verify() {
  auto times = static_cast<int64_t>(getTimes());
  if (times < 1)
    return emitOpError() << "(C1) has " << times
                         << " turns, expected 1 or more";
  if (getNumResults() < getCarried().size())
    return emitOpError() << "(C3) carries " << getCarried().size()
                         << " values, but has " << getNumResults()
                         << " results";
  for (Value whole : llvm::concat<Value>(SmallVector<Value>(getCut()),
                                         SmallVector<Value>(joinedResults())))
    if (!isCut(whole.getType(), getDimAttr(), times))
      return emitOpError() << "(C1) has " << times << " parts of "
                           << whole.getType() << " along '" << getDim()
                           << "', expected a dim of it whose size is a "
                              "multiple";
  if (getCount() &&
      (tensorType(getCount()).getRank() != 0 || !joinedResults().empty()))
    return emitOpError() << "(C4) is counted by " << getCount().getType()
                         << " and sets " << joinedResults().size()
                         << " results side by side, expected tensor<i32> and "
                            "none: a turn may not come";
  return success();
}

LogicalResult RepeatOp::verifyRegions() {
  auto expected = llvm::map_to_vector(
      getCut(), [&](Value whole) -> Type { return partOf(whole.getType()); });
  llvm::append_range(expected, getCarried().getTypes());
  llvm::append_range(expected, getShared().getTypes());
  if (getBody().getArgumentTypes() != TypeRange(expected))
    return emitOpError() << "(C2) has a body of "
                         << getBody().getArgumentTypes() << ", expected "
                         << TypeRange(expected);
  auto yielded = llvm::map_to_vector(joinedResults(), [&](Value whole) -> Type {
    return partOf(whole.getType());
  });
  llvm::append_range(yielded, getCarried().getTypes());
  TypeRange found = getBody().front().getTerminator()->getOperandTypes();
  if (found != TypeRange(yielded) ||
      carriedResults().getTypes() != getCarried().getTypes())
    return emitOpError() << "(C3) yields " << found << ", expected "
                         << TypeRange(yielded)
                         << ", and results of what is carried like it";
  return success();
}

} // namespace meshwork::transformer
