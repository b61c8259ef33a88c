// Each instruction: its operands, and what it asks of the plan around it.
#include "lib/Plan/Operation.h"
#include "lib/Plan/PlanCheckInternal.h"

namespace meshwork::plan {
namespace {

/// The code holds shapes and strides; views must reach as far as it does.
absl::Status checkSpans(const ProgramCheck &c, const Launch &op,
                        const Kernel &kernel) {
  const auto &spans = orEmpty(kernel.arg_bytes());
  if (spans.size() != kernel.num_args())
    return bad("kernel ", quote(kernel.symbol()), " takes ", kernel.num_args(),
               " args and tells the bytes of ", spans.size());
  for (uint32_t i = 0; i < spans.size(); ++i) {
    const ViewInfo &view = c.views[op.args()->Get(i)];
    if (view.spanBytes != spans.Get(i))
      return bad("arg ", i, " is ", describe(view), ", ", view.spanBytes,
                 " bytes from first to last, kernel ", quote(kernel.symbol()),
                 " expects ", spans.Get(i));
  }
  return absl::OkStatus();
}

absl::Status check(const ProgramCheck &c, const Launch &op) {
  uint32_t kernels = c.plan.kernels() ? c.plan.kernels()->size() : 0;
  uint32_t args = op.args() ? op.args()->size() : 0;
  if (op.kernel() >= kernels)
    return bad("kernel ", op.kernel(), " does not exist, there are ", kernels);
  const Kernel &kernel = *c.plan.kernels()->Get(op.kernel());
  if (args != kernel.num_args())
    return bad("it has ", args, " args, kernel ", quote(kernel.symbol()),
               " takes ", kernel.num_args());
  if (op.items() != kernel.items())
    return bad("it has ", op.items(), " work items, kernel ",
               quote(kernel.symbol()), " ", kernel.items());
  return checkSpans(c, op, kernel);
}

/// Whether each number that the input may be has one of so many rows. Token
/// files are checked against the vocabulary, not against this table.
absl::Status checkLookup(const ProgramCheck &c, InputKind kind, int64_t rows) {
  bool isToken = kind == InputKind::tokens || kind == InputKind::targets;
  bool isPosition =
      kind == InputKind::documents || kind == InputKind::document_positions;
  if (isToken && rows < c.plan.vocabulary())
    return bad("the table has ", rows, " rows, the vocabulary ",
               c.plan.vocabulary());
  if (isPosition && rows < c.plan.sequence())
    return bad("the table has ", rows, " rows, the sequence ",
               c.plan.sequence(), " positions");
  if (kind == InputKind::inner_targets || kind == InputKind::positions)
    return bad("ids are ", EnumNameInputKind(kind),
               ", which may be -1, expected rows of the table");
  return absl::OkStatus();
}

bool isOnHost(const ProgramCheck &c, uint32_t view) {
  return c.bufferOf(c.views[view]).space() == Space::host;
}

absl::Status checkReach(const ProgramCheck &c, const Instruction &at) {
  if (at.op_as_Copy())
    return absl::OkStatus();
  absl::Status found;
  forEachOperand(at, [&](const Operand &operand) {
    if (found.ok() && isOnHost(c, operand.view))
      found = bad(operand.role, " lies in the host's memory, in ",
                  quote(c.bufferOf(c.views[operand.view]).name()),
                  ", which only a Copy reaches");
  });
  return found;
}

/// Of the table's rows; with a first row other ranks hold the others.
absl::Status checkIds(const ProgramCheck &c, uint32_t table, uint32_t ids,
                      uint32_t firstRow) {
  if (firstRow != noView)
    return absl::OkStatus();
  for (const Input *input : orEmpty(c.program.inputs()))
    if (input->view() < c.views.size() &&
        c.views[input->view()].buffer == c.views[ids].buffer)
      MESHWORK_RETURN_IF_ERROR(
          checkLookup(c, input->kind(), c.views[table].shape[0]));
  return absl::OkStatus();
}

absl::Status check(const ProgramCheck &c, const Embedding &op) {
  return checkIds(c, op.table(), op.ids(), op.first_row());
}
absl::Status check(const ProgramCheck &c, const EmbeddingGrad &op) {
  return checkIds(c, op.dtable(), op.ids(), op.first_row());
}

absl::Status check(const ProgramCheck &c, const Collective &op) {
  return checkCollective(c, op);
}

absl::Status check(const ProgramCheck &c, const Send &op) {
  return checkTransfer(c, op);
}
absl::Status check(const ProgramCheck &c, const Receive &op) {
  return checkTransfer(c, op);
}

absl::Status check(const ProgramCheck &c, const Copy &op) {
  return isOnHost(c, op.src()) && isOnHost(c, op.dst())
             ? bad("copies within the host's memory, expected src or dst on "
                   "the device")
             : absl::OkStatus();
}

/// Of others the operands say all (CheckOperands.h), or what is before and
/// behind them (checkAsync, checkTurns).
template <typename Op> absl::Status check(const ProgramCheck &, const Op &) {
  return absl::OkStatus();
}

} // namespace

absl::Status checkOperation(const ProgramCheck &c,
                            const Instruction &instruction) {
  if (instruction.op_type() == Operation::NONE ||
      instruction.op_type() > Operation::MAX || !instruction.op())
    return bad("unknown or absent operation ",
               static_cast<int>(instruction.op_type()));
  absl::Status found;
  forEachOperand(instruction, [&](const Operand &operand) {
    if (found.ok())
      found = findView(c, operand.view, operand.role).status();
  });
  MESHWORK_RETURN_IF_ERROR(found);
  MESHWORK_RETURN_IF_ERROR(checkReach(c, instruction));
  auto nameOf = [&](uint32_t buffer) {
    return quote(c.program.buffers()->Get(buffer)->name());
  };
  int64_t ranks = 0;
  if (const Collective *op = instruction.op_as_Collective()) {
    MESHWORK_RETURN_IF_ERROR(checkAxes(c.plan, op->axes()));
    ranks = static_cast<int64_t>(groupSize(c.plan, op->axes()));
  }
  MESHWORK_RETURN_IF_ERROR(
      checkOperands(instruction, {c.views, nameOf, ranks}));
  return visitOperation<absl::Status>(
      instruction, [&](const auto &op) { return check(c, op); });
}

} // namespace meshwork::plan
