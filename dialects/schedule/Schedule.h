// The schedule dialect: include this one.
#pragma once

#include "dialects/mesh/Mesh.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/schedule/ScheduleDialect.h.inc"
#include "dialects/schedule/ScheduleEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/schedule/ScheduleAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/schedule/ScheduleOps.h.inc"

namespace meshwork::schedule {

/// The buffer that a view lies in.
BufferOp bufferOf(::mlir::Value view);
/// Whether an op is an instruction: something that runs.
bool isInstruction(::mlir::Operation *op);
/// How many of an instruction's last operands it writes.
unsigned countWrites(::mlir::Operation *instruction);
/// The phases of a program in the order in which they run.
::llvm::SmallVector<PhaseOp> phasesOf(ProgramOp program);

} // namespace meshwork::schedule
