// Registration, and what passes ask of instructions.
#include "dialects/schedule/Schedule.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwork::schedule;

namespace meshwork::schedule { // Actions.cpp
ParseResult parseActions(AsmParser &parser, DenseI32ArrayAttr &table);
void printActions(AsmPrinter &printer, DenseI32ArrayAttr table);
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

namespace meshwork::schedule {

BufferOp bufferOf(Value view) {
  return view.getDefiningOp<ViewOp>().getBuffer().getDefiningOp<BufferOp>();
}

bool isInstruction(Operation *op) { return isa<InstructionOpInterface>(op); }

} // namespace meshwork::schedule
