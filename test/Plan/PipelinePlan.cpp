#include "PipelinePlan.h"
#include <algorithm>

namespace meshwork::plan::test {
namespace {
constexpr uint32_t pp = 1; // the axis

uint32_t bufferFor(ProgramT &program, const char *name, uint32_t like) {
  const ViewT &view = *program.views[like];
  uint32_t made =
      addTensor(program, name, BufferKind::activations, view.dtype, view.shape);
  program.buffers.back()->persistent = false;
  return made;
}

void addList(ProgramT &program, ListKind kind, uint32_t stage) {
  program.lists.push_back(std::make_unique<ListT>());
  program.lists.back()->kind = kind;
  program.lists.back()->stage = stage;
}

template <typename Transfer>
void addTransfer(ProgramT &program, ListKind kind, const char *name,
                 uint32_t view, uint32_t peer) {
  Transfer op;
  op.parts = {view};
  op.axis = pp;
  op.peer = peer;
  insert(listOf(program, kind), 0, name, op);
}

void dropInput(ProgramT &program, InputKind kind) {
  std::erase_if(program.inputs,
                [&](const auto &input) { return input->kind == kind; });
}

/// One for each microbatch that is under way.
void copyTokens(ProgramT &program, uint32_t copies) {
  BufferT &buffer = *program.buffers[program.views[tokens]->buffer];
  buffer.offset = (program.arena_bytes + 63) / 64 * 64;
  buffer.copies = copies;
  buffer.size_bytes *= copies;
  program.arena_bytes = buffer.offset + buffer.size_bytes;
}

/// Loss and norm are sums over the stages; most have nothing to add.
void addResults(ProgramT &program, bool hasLoss, bool hasWeights) {
  FillT nothing;
  nothing.dst = lossCell;
  if (!hasLoss)
    insert(listOf(program, ListKind::step), 0, "no loss", nothing);
  InstructionList &update = updateOf(program);
  opOf<CollectiveT>(*update[0]).axes = {0, pp};
  if (!hasWeights) {
    nothing.dst = gradNormCell;
    update.resize(1);
    insert(update, 1, "no weights", nothing);
  }
  CollectiveT norm;
  norm.axes = {pp};
  norm.parts.push_back(transfer(gradNorm, gradNorm));
  norm.pass = Pass::update;
  norm.cause = std::make_unique<CauseT>();
  insert(update, hasWeights ? 3 : 2, "norm of all stages", norm);
}

/// GPUs fill by kernels.
void addFillKernels(ProgramT &program, const std::vector<uint32_t> &kernels) {
  for (auto &list : program.lists)
    for (auto &instruction : list->instructions)
      if (instruction->op.type == Operation::Fill)
        instruction->kernels = kernels;
}

/// Lists between step and update in the order in which a microbatch runs them.
std::vector<ListKind> listsOf(uint32_t stage, uint32_t stages) {
  bool isFirst = stage == 0, isLast = stage + 1 == stages;
  if (isFirst && isLast)
    return {ListKind::forward, ListKind::backward};
  if (isFirst)
    return {ListKind::forward, ListKind::send, ListKind::recv_grad,
            ListKind::backward};
  if (isLast)
    return {ListKind::recv, ListKind::forward, ListKind::backward,
            ListKind::send_grad};
  return {ListKind::recv, ListKind::send, ListKind::recv_grad,
          ListKind::send_grad};
}

/// Microbatches whose forward runs before the first backward.
uint32_t aheadOf(const PipelineOptions &options, uint32_t stage) {
  uint32_t m = options.microbatches;
  return options.forwardFirst ? m : std::min(m, options.stages - stage);
}

void makeStage(ProgramT &program, const PipelineOptions &options,
               uint32_t stage) {
  bool isFirst = stage == 0, isLast = stage + 1 == options.stages;
  InstructionList forward = std::move(forwardOf(program)),
                  update = std::move(updateOf(program)),
                  once = std::move(onceOf(program));
  program.lists.clear();
  addList(program, ListKind::once, 0);
  addList(program, ListKind::step, 0);
  for (ListKind kind : listsOf(stage, options.stages))
    addList(program, kind, stage);
  addList(program, ListKind::update, 0);
  onceOf(program) = std::move(once);
  updateOf(program) = std::move(update);
  uint32_t dx = isFirst && isLast ? onesAsX : bufferFor(program, "dx", x);
  if (isFirst) {
    copyTokens(program, aheadOf(options, stage));
    forwardOf(program).push_back(std::move(forward[0])); // wte
    opOf<EmbeddingGradT>(*forward[2]).dout = dx;
    listOf(program, ListKind::backward).push_back(std::move(forward[2]));
  } else
    dropInput(program, InputKind::tokens);
  if (isLast) {
    forwardOf(program).push_back(std::move(forward[1])); // mean
    FillT share;
    share.dst = dx;
    share.value = opOf<FillT>(*onceOf(program)[0]).value;
    if (!isFirst)
      insert(listOf(program, ListKind::backward), 0, "gradient of x", share);
  } else
    dropInput(program, InputKind::targets);
  if (!isLast) {
    addTransfer<SendT>(program, ListKind::send, "x to the next stage", x,
                       stage + 1);
    addTransfer<ReceiveT>(program, ListKind::recv_grad,
                          "dx from the next stage", dx, stage + 1);
  }
  if (!isFirst) {
    addTransfer<ReceiveT>(program, ListKind::recv, "x from the stage before", x,
                          stage - 1);
    addTransfer<SendT>(program, ListKind::send_grad, "dx to the stage before",
                       dx, stage - 1);
    program.parameters.clear();
  }
  addResults(program, isLast, isFirst);
  setStageActions(program, stageActions(options, stage));
  setLossKnown(program, 1);
}
} // namespace

uint32_t listNumber(const ProgramT &program, ListKind kind) {
  auto found = std::find_if(program.lists.begin(), program.lists.end(),
                            [&](const auto &one) { return one->kind == kind; });
  return static_cast<uint32_t>(found - program.lists.begin());
}

void setStageActions(ProgramT &program,
                     const std::vector<StageAction> &middle) {
  program.actions = {{listNumber(program, ListKind::step), 0}};
  for (auto [kind, microbatch] : middle)
    program.actions.emplace_back(listNumber(program, kind), microbatch);
  program.actions.emplace_back(listNumber(program, ListKind::update), 0);
  if (program.loss_known)
    setLossKnown(program, program.loss_known->instruction());
}

std::vector<StageAction> stageActions(const PipelineOptions &options,
                                      uint32_t stage) {
  uint32_t m = options.microbatches, ahead = aheadOf(options, stage);
  std::vector<ListKind> lists = listsOf(stage, options.stages);
  size_t backward =
      static_cast<size_t>(std::find_if(lists.begin(), lists.end(),
                                       [](ListKind kind) {
                                         return kind == ListKind::backward ||
                                                kind == ListKind::recv_grad;
                                       }) -
                          lists.begin());
  std::vector<StageAction> actions;
  auto run = [&](size_t begin, size_t end, uint32_t microbatch) {
    for (size_t i = begin; i < end; ++i)
      actions.emplace_back(lists[i], microbatch);
  };
  for (uint32_t i = 0; i < m + ahead; ++i) {
    if (i >= ahead)
      run(backward, lists.size(), i - ahead);
    if (i < m)
      run(0, backward, i);
  }
  return actions;
}

PlanT pipelinePlan(const PipelineOptions &options) {
  TinyOptions one{.ranks = options.dataParallel,
                  .microbatches = options.microbatches};
  PlanT plan = options.isForGpus ? tinyGpuPlan(one) : tinyPlan(one);
  addAxis(plan, "pp", options.stages);
  plan.program_axes = {pp};
  std::vector<uint32_t> fill = onceOf(*plan.programs[0])[0]->kernels;
  for (uint32_t stage = 0; stage < options.stages; ++stage) {
    plan.program_numbers.push_back(stage);
    if (stage > 0)
      plan.programs.push_back(std::make_unique<ProgramT>());
  }
  for (uint32_t stage = options.stages; stage-- > 0;) {
    if (stage > 0)
      *plan.programs[stage] = ProgramT(*plan.programs[0]);
    makeStage(*plan.programs[stage], options, stage);
    addFillKernels(*plan.programs[stage], fill);
  }
  return plan;
}

} // namespace meshwork::plan::test
