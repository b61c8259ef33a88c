// Verifiers of buffers, views and parameters, and what holds of every
// instruction.
#include "dialects/schedule/Views.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;

namespace meshwork::schedule {

Strided::Strided(Value view)
    : type(cast<MemRefType>(view.getType())), shape(type.getShape()) {
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    llvm_unreachable("verified by schedule.view");
}

std::optional<plan::DType> elementTypeOf(Type element) {
  if (element.isSignlessInteger(32))
    return plan::DType::i32;
  return llvm::TypeSwitch<Type, std::optional<plan::DType>>(element)
      .Case([](Float32Type) { return plan::DType::f32; })
      .Case([](BFloat16Type) { return plan::DType::bf16; })
      .Case([](Float8E4M3FNType) { return plan::DType::e4m3; })
      .Case([](Float8E5M2Type) { return plan::DType::e5m2; })
      .Default([](Type) { return std::nullopt; });
}

bool Strided::isWideFloat() const {
  return element().isF32() || element().isBF16();
}

bool Strided::isFloat8() const {
  return isa<Float8E4M3FNType, Float8E5M2Type>(element());
}

bool Strided::isNumber(Type element) const {
  return type.getElementType() == element && type.getNumElements() == 1;
}

bool Strided::isContiguous() const {
  int64_t expected = 1;
  for (int64_t dim = rank() - 1; dim >= 0; --dim) {
    if (shape[dim] > 1 && strides[dim] != expected)
      return false;
    expected *= shape[dim];
  }
  return true;
}

bool isView(Value value) {
  auto view = value.getDefiningOp<ViewOp>();
  if (!view || !view.getBuffer().getDefiningOp<BufferOp>())
    return false;
  auto type = cast<MemRefType>(value.getType());
  int64_t offset;
  SmallVector<int64_t> strides;
  return type.hasStaticShape() && !llvm::is_contained(type.getShape(), 0) &&
         succeeded(type.getStridesAndOffset(strides, offset));
}

LogicalResult verifyInstruction(Operation *op) {
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (!isView(operand))
      return op->emitOpError()
             << "operand #" << i << " is no schedule.view of a buffer";
  for (StringRef cost : {"flops", "bytes"})
    if (op->getAttrOfType<IntegerAttr>(cost).getInt() < 0)
      return op->emitOpError() << "has fewer than 0 " << cost;
  return success();
}

LogicalResult BufferOp::verify() {
  auto type = cast<MemRefType>(getResult().getType());
  if (type.getRank() != 1 || !type.hasStaticShape() ||
      !type.getElementType().isInteger(8) || type.getDimSize(0) < 1)
    return emitOpError() << "(C1) is " << type
                         << ", expected a memref of bytes, of one or more";
  std::optional<int64_t> copies = getCopies();
  constexpr int64_t aligned = 64;
  if (copies && (*copies < 2 || getSizeBytes() / aligned < *copies ||
                 getSizeBytes() / aligned % *copies != 0 ||
                 getSizeBytes() % aligned != 0))
    return emitOpError() << "(C2) of " << getSizeBytes() << " bytes has "
                         << *copies
                         << " copies, expected two or more, each of a multiple "
                            "of 64 bytes";
  return success();
}

/// Elements from the first to the last; nothing when they cannot be counted.
static std::optional<int64_t> reachOf(ArrayRef<int64_t> shape,
                                      ArrayRef<int64_t> strides) {
  std::optional<int64_t> reach = 0;
  for (auto [size, stride] : llvm::zip_equal(shape, strides)) {
    if (size < 1 || stride < 1 || !reach)
      return std::nullopt;
    reach = llvm::checkedMulAdd<int64_t>(size - 1, stride, *reach);
  }
  return reach;
}

/// `reach` elements behind its first one in the first turn.
static LogicalResult verifyAdvances(ViewOp view, int64_t reach) {
  auto advances = view.getAdvances().value_or(ArrayRef<int64_t>());
  SmallVector<RepeatOp> around = repeatsAround(view);
  if (advances.size() > around.size())
    return view.emitOpError()
           << "(C3) has " << advances.size() << " advances in " << around.size()
           << " repeats, expected no more than those";
  auto type = cast<MemRefType>(view.getResult().getType());
  int64_t bytes = type.getElementTypeBitWidth() / 8,
          size = view.getBuffer().getDefiningOp<BufferOp>().getBytesOfCopy();
  std::optional<int64_t> end = llvm::checkedMulAdd<int64_t>(
      reach + 1, bytes, static_cast<int64_t>(view.getOffset()));
  for (auto [advance, repeat] : llvm::zip(advances, around)) {
    if (advance < 0 || advance % bytes)
      return view.emitOpError() << "(C3) advances by " << advance
                                << " bytes, expected a multiple of its "
                                   "element's "
                                << bytes << ", not negative";
    auto turns = std::max<int64_t>(static_cast<int64_t>(repeat.getTimes()), 1);
    if (end)
      end = llvm::checkedMulAdd<int64_t>(advance, turns - 1, *end);
  }
  if (end && *end <= size)
    return success();
  return view.emitOpError()
         << "(C3) leaves its buffer of " << size << " bytes in the last turn";
}

LogicalResult ViewOp::verify() {
  auto type = cast<MemRefType>(getResult().getType());
  auto buffer = getBuffer().getDefiningOp<BufferOp>();
  Type element = type.getElementType();
  if (!elementTypeOf(element))
    return emitOpError() << "(C2) is of " << element
                         << ", expected f32, bf16, i32, f8E4M3FN or f8E5M2";
  int64_t offset = 0, elementBytes = type.getElementTypeBitWidth() / 8;
  SmallVector<int64_t> strides;
  std::optional<int64_t> reach;
  if (succeeded(type.getStridesAndOffset(strides, offset)))
    reach = reachOf(type.getShape(), strides);
  if (!buffer || !reach)
    return emitOpError()
           << "(C1) expected positive static sizes and strides in a buffer, "
              "found "
           << type;
  int64_t begin = getOffset(), size = buffer.getBytesOfCopy();
  if (begin < 0 || begin % elementBytes || begin >= size ||
      *reach >= (size - begin) / elementBytes)
    return emitOpError() << "(C1) has " << *reach + 1 << " elements of "
                         << elementBytes << " bytes from byte " << begin
                         << " on, of a buffer of " << size;
  return verifyAdvances(*this, *reach);
}

LogicalResult ParameterOp::verify() {
  if (getStates().size() != getViews().size())
    return emitOpError() << "(C1) has " << getStates().size() << " states and "
                         << getViews().size() << " views";
  llvm::StringSet<> names;
  int weights = 0;
  for (Attribute one : getStates()) {
    auto state = dyn_cast<StateAttr>(one);
    if (!state || !names.insert(state.getName()).second)
      return emitOpError() << "(C1) found " << one
                           << ", expected a #schedule.state of another name";
    weights += state.getRole() == StateRole::weight;
  }
  if (weights != 1)
    return emitOpError() << "(C1) has " << weights
                         << " states of role weight, expected 1";
  return success();
}

} // namespace meshwork::schedule
