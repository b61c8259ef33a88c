// The schedule dialect: include this one.
#pragma once

#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Transformer.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "lib/Plan/Actions.h"
#include "lib/Plan/Repeats.h"
#include "lib/Schedules/Table.h"

#include "dialects/schedule/ScheduleDialect.h.inc"
#include "dialects/schedule/ScheduleEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/schedule/ScheduleAttrs.h.inc"

namespace meshwork::schedule {

/// One part of a collective.
struct Transfer {
  ::mlir::Value src, dst;
  int64_t dim, toDim;
};

/// The mesh axis of a send or receive.
struct AxisName {
  ::llvm::StringRef name;
};

/// What holds of every instruction: its operands are views, and it costs
/// nothing negative.
::mlir::LogicalResult verifyInstruction(::mlir::Operation *op);
/// Whether the operands of an instruction fit, by lib/Plan/CheckOperands.h.
::mlir::LogicalResult verifyOperands(::mlir::Operation *op);
template <typename Op>
struct OperandsFit : ::mlir::OpTrait::TraitBase<Op, OperandsFit> {
  static ::mlir::LogicalResult verifyTrait(::mlir::Operation *op) {
    return verifyOperands(op);
  }
};

} // namespace meshwork::schedule

#include "dialects/schedule/ScheduleInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/schedule/ScheduleOps.h.inc"

namespace meshwork::schedule {

/// The buffer that a view lies in.
BufferOp bufferOf(::mlir::Value view);
/// Whether an op is an instruction: something that runs.
bool isInstruction(::mlir::Operation *op);
/// All instructions of a list in the plan's order: a repeat, then what is in
/// it.
::llvm::SmallVector<::mlir::Operation *> instructionsOf(ListOp list);
/// The repeats around an op, the outermost first.
::llvm::SmallVector<RepeatOp> repeatsAround(::mlir::Operation *op);
/// The lists of a program as they stand.
::llvm::SmallVector<ListOp> listsOf(ProgramOp program);
/// The list of this kind; null where there is none.
ListOp listOf(ProgramOp program, ListKind kind);
/// Lists and actions as far as order goes; `actions` is empty without a table.
struct Order {
  ::std::vector<plan::ListShape> lists;
  ::std::vector<plan::Action> actions;
};
Order orderOf(ProgramOp program);
/// What the module of a rank carries to lowering: an ActionTableAttr.
inline constexpr ::llvm::StringLiteral actionTableName =
    "schedule.action_table";
void setActionTable(::mlir::ModuleOp rank,
                    ::llvm::ArrayRef<schedules::Action> actions);
/// What the module of a rank that stands for others carries, and then its
/// program: an EqualRankAttr for each of them (-pipeline-fold-ranks).
inline constexpr ::llvm::StringLiteral equalRanksName = "schedule.equal_ranks";
/// The table of actions at the end of `program`: the `step`, lists of
/// microbatches in the order of `rows`, and the update. Without them there is
/// one microbatch, whose lists run as they stand.
void createActions(::mlir::OpBuilder &builder, ProgramOp program,
                   ActionTableAttr rows);
/// What the send or receive in a list is called: "activations to stage 3" in
/// that of stage 2.
::std::string nameOfTransfer(ListKind kind, int64_t stage);

} // namespace meshwork::schedule
