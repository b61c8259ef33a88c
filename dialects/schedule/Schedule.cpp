// Registration, and what passes ask of instructions.
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
#include "dialects/schedule/ScheduleInterfaces.cpp.inc"
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

bool isInstruction(Operation *op) { return isa<InstructionOpInterface>(op); }

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
