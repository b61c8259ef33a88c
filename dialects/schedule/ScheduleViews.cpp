// Verifiers of buffers, views and parameters, and what holds of every
// instruction.
#include "dialects/schedule/OpTables.h"
#include "dialects/schedule/Views.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace meshwork::schedule {

std::optional<plan::DType> elementTypeOf(Type element) {
  if (element.isSignlessInteger(32))
    return plan::DType::i32;
  if (element.isSignlessInteger(8))
    return plan::DType::i8;
  return llvm::TypeSwitch<Type, std::optional<plan::DType>>(element)
      .Case([](Float32Type) { return plan::DType::f32; })
      .Case([](BFloat16Type) { return plan::DType::bf16; })
      .Case([](Float8E4M3FNType) { return plan::DType::e4m3; })
      .Case([](Float8E5M2Type) { return plan::DType::e5m2; })
      .Default([](Type) { return std::nullopt; });
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

static std::vector<plan::RepeatShape> timesAround(ViewOp view) {
  std::vector<plan::RepeatShape> around;
  for (RepeatOp repeat : repeatsAround(view))
    around.push_back({0, 0, static_cast<uint32_t>(repeat.getTimes())});
  return around;
}

static absl::Status checkBytes(const plan::ViewInfo &view, BufferOp buffer,
                               const std::vector<plan::RepeatShape> &around) {
  std::string name = quote(buffer.getName().str());
  auto bytes = static_cast<uint64_t>(buffer.getBytesOfCopy());
  absl::Status status = plan::checkInBuffer(view, bytes, name);
  return status.ok() ? plan::checkInTurns(view, bytes, name, around) : status;
}

LogicalResult ViewOp::verify() {
  auto type = cast<MemRefType>(getResult().getType());
  if (!elementTypeOf(type.getElementType()))
    return emitOpError() << "(C2) is of " << type.getElementType()
                         << ", expected f32, bf16, i32, f8E4M3FN, f8E5M2 or i8";
  if (!isView(getResult()))
    return emitOpError()
           << "(C1) expected positive static sizes and strides in a buffer, "
              "found "
           << type;
  OpTables alone(*this);
  alone.tables().view(getResult());
  auto views = alone.views();
  return alone.verified(views.ok()
                            ? checkBytes(views->front(), bufferOf(getResult()),
                                         timesAround(*this))
                            : views.status());
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
