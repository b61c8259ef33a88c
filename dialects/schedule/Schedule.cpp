// Registration, verifiers, and what passes ask of instructions.
#include "dialects/schedule/Schedule.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwork::schedule;

namespace meshwork::schedule { // Actions.cpp
ParseResult parseActions(OpAsmParser &parser, DenseI32ArrayAttr &table);
void printActions(OpAsmPrinter &printer, Operation *op,
                  DenseI32ArrayAttr table);
} // namespace meshwork::schedule

#include "dialects/schedule/ScheduleDialect.cpp.inc"
#include "dialects/schedule/ScheduleEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/schedule/ScheduleAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/schedule/ScheduleOps.cpp.inc"

void ScheduleDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/schedule/ScheduleOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/schedule/ScheduleAttrs.cpp.inc"
      >();
}

LogicalResult ViewOp::verify() {
  auto type = cast<MemRefType>(getResult().getType());
  auto buffer = getBuffer().getDefiningOp<BufferOp>();
  int64_t offset = 0, elementBytes = type.getElementTypeBitWidth() / 8;
  SmallVector<int64_t> strides;
  if (!buffer || failed(type.getStridesAndOffset(strides, offset)) ||
      llvm::any_of(strides, [](int64_t s) { return s <= 0; }))
    return emitOpError()
           << "(C1) expected positive static strides in a buffer, found "
           << type;
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), strides))
    last += (size - 1) * stride;
  int64_t begin = getOffset(), end = begin + (last + 1) * elementBytes;
  if (begin < 0 || begin % elementBytes || end > buffer.getSizeBytes())
    return emitOpError() << "(C1) covers bytes " << begin << " to " << end
                         << " of a buffer of " << buffer.getSizeBytes();
  return success();
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

namespace meshwork::schedule {

BufferOp bufferOf(Value view) {
  return view.getDefiningOp<ViewOp>().getBuffer().getDefiningOp<BufferOp>();
}

bool isInstruction(Operation *op) {
  return isa<LaunchOp, MatmulOp, AttentionOp, AttentionGradOp, EmbeddingOp,
             EmbeddingGradOp, RotaryTableOp, FillOp, CopyBlockOp, CollectiveOp,
             WaitOp>(op);
}

unsigned countWrites(Operation *instruction) {
  return llvm::TypeSwitch<Operation *, unsigned>(instruction)
      .Case([](LaunchOp op) { return op.getNumOutputs(); })
      .Case([](CollectiveOp op) { return op.getOutputs().size(); })
      .Case<AttentionOp, RotaryTableOp>([](auto) { return 2; })
      .Case([](AttentionGradOp) { return 3; })
      .Case([](WaitOp) { return 0; })
      .Case([](MatmulOp op) {
        return op.getAux() && op.getEpilogue() != Epilogue::gelu_grad ? 2 : 1;
      })
      .Default([](Operation *) { return 1; });
}

Value addsUpIn(Operation *instruction) {
  return llvm::TypeSwitch<Operation *, Value>(instruction)
      .Case([](MatmulOp op) {
        return op.getAccumulate() == Accumulate::after_first ? op.getDst()
                                                             : Value();
      })
      .Case([](EmbeddingGradOp op) {
        return op.getAccumulate() == Accumulate::after_first ? op.getDtable()
                                                             : Value();
      })
      .Default([](Operation *) { return Value(); });
}

} // namespace meshwork::schedule
