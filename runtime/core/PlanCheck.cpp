// The plan as a whole, then each program; the details are in PlanCheck*.cpp.
#include "runtime/core/PlanCheck.h"
#include "runtime/core/PlanCheckInternal.h"
#include <cmath>

namespace meshwork::runtime {
namespace {

absl::Status checkMesh(const plan::Plan &plan, uint64_t &ranks) {
  ranks = 1;
  if (!plan.mesh())
    return bad("it has no mesh");
  if (plan.mesh()->size() > 32) // sets of axes are masks of 32 bits
    return bad("its mesh has ", plan.mesh()->size(),
               " axes, expected at most 32");
  for (const plan::Axis *axis : *plan.mesh())
    if (axis->size() == 0 || !checkedMul(ranks, axis->size(), ranks) ||
        ranks > (1u << 24))
      return bad("mesh axis ", quote(axis->name()), " of size ", axis->size(),
                 " gives a mesh of 0 or more than 2^24 ranks");
  if (!plan.programs() || plan.programs()->size() == 0)
    return bad("it has no programs");
  uint64_t entries =
      plan.program_of_rank() ? plan.program_of_rank()->size() : 0;
  if (entries != 1 && entries != ranks)
    return bad("program_of_rank has ", entries, " entries, expected 1 or ",
               ranks, ", the product of the mesh");
  for (uint32_t program : *plan.program_of_rank())
    if (program >= plan.programs()->size())
      return bad("program_of_rank names program ", program, ", there are ",
                 plan.programs()->size());
  return absl::OkStatus();
}

absl::Status checkBatch(const plan::Plan &plan) {
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

absl::Status checkHeader(const plan::Plan &plan) {
  if (plan.compute() != plan::DType::f32 && plan.compute() != plan::DType::bf16)
    return bad("unknown compute type ", static_cast<int>(plan.compute()));
  for (float beta : {plan.beta1(), plan.beta2()})
    if (!(beta >= 0 && beta < 1))
      return bad("beta ", beta, " is not in [0, 1)");
  return checkDevice(plan);
}

/// Sums lengths of lists inside instructions. FlatBuffers may point at one
/// list many times; counting stops such a plan from costing quadratic time.
absl::Status countOperands(const plan::Plan &plan, uint64_t &budget) {
  auto spend = [&](const auto *list) {
    uint64_t size = list ? list->size() : 0;
    bool enough = size <= budget;
    budget -= enough ? size : budget;
    return enough;
  };
  bool enough = true;
  for (const plan::Program *program : *plan.programs())
    for (const Instructions *list : {program->once(), program->step(),
                                     program->microbatch(), program->update()})
      for (uint32_t i = 0; list && enough && i < list->size(); ++i) {
        const plan::Instruction &at = *list->Get(i);
        enough = spend(at.kernels());
        if (const plan::Launch *op = at.op_as_Launch())
          enough = enough && spend(op->args());
        else if (const plan::Collective *op = at.op_as_Collective())
          enough = enough && spend(op->parts()) && spend(op->axes()) &&
                   spend(op->sources());
        else if (const plan::RotaryTable *op = at.op_as_RotaryTable())
          enough = enough && spend(op->inverse_frequencies());
      }
  return enough ? absl::OkStatus()
                : bad("its instructions have more than 2^26 operands in all");
}

absl::Status checkInstructions(const ProgramCheck &check) {
  for (const Section &section : check.sections)
    for (uint32_t i = 0; i < section.list->size(); ++i) {
      const plan::Instruction &at = *section.list->Get(i);
      absl::Status status = checkOperation(check, at);
      if (status.ok())
        status = checkKernels(check, at);
      if (!status.ok())
        return bad(section.name, "[", i, "] ", quote(at.name()), ": ",
                   status.message());
    }
  return absl::OkStatus();
}

absl::Status checkProgram(const plan::Plan &plan,
                          const plan::Program &program) {
  ProgramCheck check{plan, program, {}, {}};
  uint64_t begin = 0;
  const char *names[] = {"once", "step", "microbatch", "update"};
  const Instructions *lists[] = {
      &orEmpty(program.once()), &orEmpty(program.step()),
      &orEmpty(program.microbatch()), &orEmpty(program.update())};
  for (int i = 0; i < 4; ++i) {
    check.sections[i] = {names[i], lists[i], begin};
    begin += lists[i]->size();
  }
  if (program.loss_ready() > check.update().list->size())
    return bad("loss_ready is ", program.loss_ready(), ", update has ",
               check.update().list->size(), " instructions");
  MESHWORK_RETURN_IF_ERROR(checkBuffers(check));
  absl::StatusOr<std::vector<ViewInfo>> views = decodeViews(plan, program);
  MESHWORK_RETURN_IF_ERROR(views.status());
  check.views = std::move(*views);
  MESHWORK_RETURN_IF_ERROR(checkInstructions(check));
  MESHWORK_RETURN_IF_ERROR(checkState(check));
  MESHWORK_RETURN_IF_ERROR(checkUses(check));
  MESHWORK_RETURN_IF_ERROR(checkAsync(check));
  MESHWORK_RETURN_IF_ERROR(checkLook(check));
  return checkOverlaps(check);
}
} // namespace

absl::StatusOr<const ViewInfo *> findView(const ProgramCheck &check,
                                          uint32_t index, const char *role) {
  if (index == plan::noView)
    return bad(role, " is absent");
  if (index >= check.views.size())
    return bad(role, " is view ", index, ", there are ", check.views.size());
  return &check.views[index];
}

absl::Status expectView(const ViewInfo &found, const char *role,
                        plan::DType dtype, absl::Span<const int64_t> shape) {
  if (found.dtype == dtype && found.shape == shape)
    return absl::OkStatus();
  ViewInfo expected{};
  expected.dtype = dtype;
  expected.shape = shape;
  return bad(role, " is ", describe(found), ", expected ", describe(expected));
}

absl::Status checkPlan(const plan::Plan &plan) {
  uint64_t ranks = 0, operandBudget = uint64_t{1} << 26;
  MESHWORK_RETURN_IF_ERROR(checkMesh(plan, ranks));
  MESHWORK_RETURN_IF_ERROR(checkHeader(plan));
  MESHWORK_RETURN_IF_ERROR(checkBatch(plan));
  MESHWORK_RETURN_IF_ERROR(countOperands(plan, operandBudget));
  for (uint32_t i = 0; i < plan.programs()->size(); ++i)
    if (absl::Status status = checkProgram(plan, *plan.programs()->Get(i));
        !status.ok())
      return bad("program ", i, ": ", status.message());
  MESHWORK_RETURN_IF_ERROR(checkSharedParameters(plan));
  return checkCollectiveOrder(plan);
}

} // namespace meshwork::runtime
