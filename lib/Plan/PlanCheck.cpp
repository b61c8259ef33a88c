// The plan as a whole, then each program; the details are in PlanCheck*.cpp.
#include "lib/Plan/PlanCheck.h"
#include "lib/Plan/PlanCheckInternal.h"

namespace meshwork::plan {
namespace {

/// A program for each coordinate along the axes on which it depends.
absl::Status checkProgramNumbers(const Plan &plan) {
  uint64_t expected = 1;
  uint32_t seen = 0;
  for (uint32_t axis : orEmpty(plan.program_axes())) {
    if (axis >= plan.mesh()->size() || (seen >> axis & 1))
      return bad("program axis ", axis, " is not one of ", plan.mesh()->size(),
                 " mesh axes, or is named twice");
    seen |= 1u << axis;
    expected *= plan.mesh()->Get(axis)->size(); // At most the ranks.
  }
  const auto &numbers = orEmpty(plan.program_numbers());
  bool isOne = seen == 0 && numbers.size() == 0;
  if (!isOne && numbers.size() != expected)
    return bad("program_numbers has ", numbers.size(), " entries, expected ",
               expected, ", one for each coordinate along program_axes");
  for (uint32_t program : numbers)
    if (program >= plan.programs()->size())
      return bad("program_numbers names program ", program, ", there are ",
                 plan.programs()->size());
  return absl::OkStatus();
}

absl::Status checkMesh(const Plan &plan, uint64_t &ranks) {
  ranks = 1;
  if (!plan.mesh())
    return bad("it has no mesh");
  if (plan.mesh()->size() > 32) // sets of axes are masks of 32 bits
    return bad("its mesh has ", plan.mesh()->size(),
               " axes, expected at most 32");
  for (const Axis *axis : *plan.mesh())
    if (axis->size() == 0 || !checkedMul(ranks, axis->size(), ranks) ||
        ranks > (1u << 24))
      return bad("mesh axis ", quote(axis->name()), " of size ", axis->size(),
                 " gives a mesh of 0 or more than 2^24 ranks");
  if (!plan.programs() || plan.programs()->size() == 0)
    return bad("it has no programs");
  return checkProgramNumbers(plan);
}

absl::Status checkBatch(const Plan &plan) {
  uint64_t batch = uint64_t{plan.micro_batch()} * plan.microbatches();
  uint32_t seen = 0;
  if (plan.batch_axes())
    for (uint32_t axis : *plan.batch_axes()) {
      if (axis >= plan.mesh()->size() || (seen >> axis & 1))
        return bad("batch axis ", axis, " is not one of ", plan.mesh()->size(),
                   " mesh axes, or is named twice");
      seen |= 1u << axis;
      if (!checkedMul(batch, plan.mesh()->Get(axis)->size(), batch))
        return bad("the batch does not fit 64 bits");
    }
  if (batch == 0 || plan.sequence() == 0 || plan.vocabulary() == 0)
    return bad("micro batch ", plan.micro_batch(), ", ", plan.microbatches(),
               " microbatches, sequence ", plan.sequence(), ", vocabulary ",
               plan.vocabulary(), ": expected at least 1 of each");
  if (batch != plan.global_batch())
    return bad("the global batch is ", plan.global_batch(), " sequences, ",
               "but microbatches times micro batch times batch axes is ",
               batch);
  return absl::OkStatus();
}

absl::Status checkHeader(const Plan &plan) {
  if (plan.compute() != DType::f32 && plan.compute() != DType::bf16)
    return bad("unknown compute type ", static_cast<int>(plan.compute()));
  return checkDevice(plan);
}

/// Sums lengths of lists inside instructions. FlatBuffers may point at one
/// list many times; counting stops such a plan from costing quadratic time.
absl::Status countOperands(const Plan &plan, uint64_t &budget) {
  auto spend = [&](const auto *list) {
    uint64_t size = list ? list->size() : 0;
    bool enough = size <= budget;
    budget -= enough ? size : budget;
    return enough;
  };
  bool enough = true;
  for (const Program *program : *plan.programs())
    for (uint32_t l = 0; l < orEmpty(program->lists()).size(); ++l) {
      const Instructions &list = listOf(*program, l);
      for (uint32_t i = 0; enough && i < list.size(); ++i) {
        const Instruction &at = *list.Get(i);
        enough = spend(at.kernels());
        if (const Launch *op = at.op_as_Launch())
          enough = enough && spend(op->args());
        else if (const Collective *op = at.op_as_Collective())
          enough = enough && spend(op->parts()) && spend(op->axes()) &&
                   spend(op->sources());
        else if (const Send *op = at.op_as_Send())
          enough = enough && spend(op->parts());
        else if (const Receive *op = at.op_as_Receive())
          enough = enough && spend(op->parts());
        else if (const RotaryTable *op = at.op_as_RotaryTable())
          enough = enough && spend(op->inverse_frequencies());
      }
    }
  return enough ? absl::OkStatus()
                : bad("its instructions have more than 2^26 operands in all");
}

absl::Status checkInstructions(const ProgramCheck &check) {
  for (const Section &section : check.sections)
    for (uint32_t i = 0; i < section.list->size(); ++i) {
      const Instruction &at = *section.list->Get(i);
      absl::Status status = checkOperation(check, at);
      if (status.ok())
        status = checkKernels(check, at);
      if (!status.ok())
        return bad(section.where(i), ": ", status.message());
    }
  return absl::OkStatus();
}

/// `transfers`: what is learned of the program's, to be checked with the
/// others.
absl::Status checkProgram(const Plan &plan, const Program &program,
                          Transfers &transfers) {
  MESHWORK_RETURN_IF_ERROR(checkLists(plan, program));
  ProgramCheck check{plan, program, {}, {}, tableOf(program)};
  for (uint32_t i = 0; i < check.table.lists().size(); ++i)
    check.sections.push_back({nameOf(check.table.lists()[i]),
                              check.table.lists()[i].kind, &listOf(program, i),
                              repeatsOf(program, i)});
  MESHWORK_RETURN_IF_ERROR(checkBuffers(check));
  absl::StatusOr<std::vector<ViewInfo>> views = decodeViews(plan, program);
  MESHWORK_RETURN_IF_ERROR(views.status());
  check.views = std::move(*views);
  MESHWORK_RETURN_IF_ERROR(checkInstructions(check));
  MESHWORK_RETURN_IF_ERROR(checkTransferLists(check));
  MESHWORK_RETURN_IF_ERROR(checkTurns(check));
  MESHWORK_RETURN_IF_ERROR(checkState(check));
  MESHWORK_RETURN_IF_ERROR(checkUses(check));
  MESHWORK_RETURN_IF_ERROR(checkAsync(check));
  MESHWORK_RETURN_IF_ERROR(checkCounts(check));
  MESHWORK_RETURN_IF_ERROR(checkLook(check));
  MESHWORK_RETURN_IF_ERROR(checkUpdates(check));
  Lives lives = livesOf(program, check.table);
  MESHWORK_RETURN_IF_ERROR(checkTransferBuffers(check, lives));
  MESHWORK_RETURN_IF_ERROR(checkOverlaps(check, lives));
  transfers = transfersOf(program, check.table, lives);
  return absl::OkStatus();
}
} // namespace

absl::StatusOr<const ViewInfo *> findView(const ProgramCheck &check,
                                          uint32_t index, const char *role) {
  if (index == noView)
    return bad(role, " is absent");
  if (index >= check.views.size())
    return bad(role, " is view ", index, ", there are ", check.views.size());
  return &check.views[index];
}

absl::Status checkPlan(const Plan &plan, uint64_t *rehearsed) {
  uint64_t ranks = 0, operandBudget = uint64_t{1} << 26;
  MESHWORK_RETURN_IF_ERROR(checkMesh(plan, ranks));
  MESHWORK_RETURN_IF_ERROR(checkHeader(plan));
  MESHWORK_RETURN_IF_ERROR(checkBatch(plan));
  MESHWORK_RETURN_IF_ERROR(countOperands(plan, operandBudget));
  std::vector<Transfers> transfers(plan.programs()->size());
  for (uint32_t i = 0; i < plan.programs()->size(); ++i)
    if (absl::Status status =
            checkProgram(plan, *plan.programs()->Get(i), transfers[i]);
        !status.ok())
      return bad("program ", i, ": ", status.message());
  MESHWORK_RETURN_IF_ERROR(checkSharedParameters(plan));
  MESHWORK_RETURN_IF_ERROR(checkFileNames(plan));
  uint64_t ranksRehearsed = 0;
  absl::Status status =
      checkMeetings(plan, std::move(transfers), ranksRehearsed);
  if (rehearsed)
    *rehearsed = ranksRehearsed;
  return status;
}

} // namespace meshwork::plan
