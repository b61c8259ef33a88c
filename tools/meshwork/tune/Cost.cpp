#include "tools/meshwork/tune/Cost.h"

#include "lib/Cost/OfPlan.h"
#include "lib/Explain/Memory.h"
#include "lib/Explain/RankWork.h"
#include "lib/Explain/WholeStep.h"
#include "meshwork/Plan/Frame.h"
#include "passes/codegen/plan/PlanWriter.h"
#include "passes/pipelines/Pipelines.h"
#include "tools/meshwork/driver/Choices.h"
#include "tools/meshwork/driver/Folded.h"
#include "tools/meshwork/driver/Trial.h"

using namespace mlir;

namespace meshwork::tune {
namespace {

/// As `compile --estimate` runs them. What was chosen last may be the plan
/// already.
LogicalResult runPhases(OwningOpRef<ModuleOp> &module, spec::Spec &spec) {
  driver::FewLayers few;
  for (const pipelines::Phase &phase : pipelines::phases()) {
    if (few.haveRun(phase.name))
      continue;
    driver::Said unused;
    OwningOpRef<ModuleOp> finished;
    if (failed(
            driver::chooseBefore(phase.name, *module, spec, unused, finished)))
      return failure();
    if (finished) {
      module = std::move(finished);
      return success();
    }
    if (!few.run(phase.name, *module, spec) &&
        failed(driver::runPhase(*module, spec, phase.name,
                                /*verifies=*/false)))
      return failure();
  }
  return success();
}

/// Nothing where there is no plan.
std::optional<std::vector<char>> planOf(OwningOpRef<ModuleOp> &module,
                                        spec::Spec &spec) {
  auto emit = [&] { return module->emitError(); };
  if (failed(runPhases(module, spec)) ||
      failed(codegen::resolveTarget(spec, "", emit)))
    return std::nullopt;
  FailureOr<std::vector<char>> file = codegen::planToEstimate(*module, spec);
  if (failed(file))
    return std::nullopt;
  return std::move(*file);
}

/// What a rank takes to compute something, with so many of them.
double slownessOf(const cost::Machine &machine, uint64_t ranks) {
  constexpr double manyBytes = 1e18; // beside which a launch is nothing
  return cost::Times(machine, {ranks}).instruction({}, 0, manyBytes);
}

/// A machine whose rank, of `own`, computes as one of `all` does: the slowest
/// of more nodes, which shares its node with more ranks.
cost::Machine amongRanks(cost::Machine machine, uint64_t own, uint64_t all) {
  double slower = slownessOf(machine, all) / slownessOf(machine, own);
  for (auto *rates : {&machine.flops, &machine.attention, &machine.gradient})
    for (double &rate : *rates)
      rate /= slower;
  machine.memory /= slower;
  machine.kernels /= slower;
  return machine;
}

/// Whether they are `name` or parts of it, like "tp:(1)8".
bool areParts(const plan::Plan &plan, const cost::MovedOver &axes,
              std::string_view name) {
  return !axes.empty() && llvm::all_of(axes, [&](uint32_t axis) {
    std::string_view whole = plan.mesh()->Get(axis)->name()->string_view();
    return whole.substr(0, whole.find(':')) == name;
  });
}

/// Where it counts what moves over those axes.
double &waitOver(const plan::Plan &plan, const cost::MovedOver &axes,
                 Waits &waits) {
  return areParts(plan, axes, "tp")   ? waits.tp
         : areParts(plan, axes, "cp") ? waits.cp
                                      : waits.other;
}

/// One run of a list that is not the last of its step, which moves gradients,
/// too: by which two runs take longer than one.
double secondsOfRun(const cost::Times &times, const plan::Plan &plan,
                    const plan::Program &program, uint32_t list, Waits &waits) {
  cost::Exposed one, two;
  double seconds = cost::secondsOfStep(times, program, list, 2, &two) -
                   cost::secondsOfStep(times, program, list, 1, &one);
  for (const auto &[axes, waited] : two)
    waitOver(plan, axes, waits) += waited - one[axes];
  return seconds;
}

/// Of each list of a rank; 0 of those that run once in a step.
explain::RankWork workOf(const cost::Times &times, const plan::Plan &plan,
                         const plan::Program &program, Waits &waits) {
  explain::RankWork work = explain::workOf(program);
  for (uint32_t list = 0; list < work.lists.size(); ++list)
    work.seconds.push_back(plan::isOfMicrobatch(work.lists[list].kind)
                               ? secondsOfRun(times, plan, program, list, waits)
                               : 0);
  return work;
}

double updateOf(const cost::Times &times, const plan::Program &program) {
  double seconds = 0;
  for (uint32_t list = 0; list < program.lists()->size(); ++list)
    if (program.lists()->Get(list)->kind() == plan::ListKind::update)
      seconds += cost::secondsOfList(times, program, list, true);
  return seconds;
}

void tellLists(const plan::Plan &plan, const cost::Machine &machine,
               Compiled &compiled) {
  cost::Times times = explain::timesOn(plan, machine, cost::Ranks::threads);
  std::vector<explain::RankWork> ranks;
  size_t stages = 0;
  for (const plan::Program *program : *plan.programs()) {
    Waits waits;
    ranks.push_back(workOf(times, plan, *program, waits));
    if (ranks.size() == 1)
      compiled.waits = waits;
    for (const plan::ListShape &list : ranks.back().lists)
      stages = std::max<size_t>(stages, list.stage + 1);
  }
  compiled.lists = explain::costsOf(ranks, stages);
  compiled.update = updateOf(times, *plan.programs()->Get(0));
}

/// Of the forward pass.
ToHost toHostOf(const plan::Program &program) {
  ToHost all;
  for (uint32_t i = 0; i < program.lists()->size(); ++i)
    if (program.lists()->Get(i)->kind() == plan::ListKind::forward)
      for (const plan::Instruction *one : plan::listOf(program, i))
        if (const plan::Copy *copy = one->op_as_Copy())
          if (double bytes = cost::bytesOverHostLink(program, *copy); bytes > 0)
            ++all[bytes];
  return all;
}

uint64_t storedBytes(const plan::Program &program) {
  return explain::measureMemory(program, explain::Listing(program))
      .persistentBytes;
}

void tell(const explain::WholeStep &whole, Costed &costed) {
  costed.status = Costed::done;
  costed.seconds = whole.estimate.step.seconds;
  costed.tokensPerSecond = whole.tokensPerSecond;
  costed.mfu = whole.mfu;
  costed.bytes = whole.peakBytes;
  costed.hostBytes = whole.hostBytes;
  costed.exposed = *whole.exposed;
  costed.bubble = whole.bubble;
}

/// What a plan should take; `use` sees it.
using Use = llvm::function_ref<void(const plan::Plan &, const cost::Machine &)>;
Costed compile(ModuleOp model, const spec::Spec &given,
               const std::set<size_t> &layers, Use use) {
  Costed costed;
  spec::Spec spec = given;
  OwningOpRef<ModuleOp> module(model.clone());
  if (!layers.empty() && !keepLayers(*module, layers))
    return costed;
  driver::QuietTrials trial(module->getContext());
  std::optional<std::vector<char>> file = planOf(module, spec);
  if (!file) {
    costed.status = trial.areRefused() ? Costed::refused : Costed::broken;
    costed.why = trial.firstError();
    return costed;
  }
  const plan::Plan &plan = *plan::GetPlan(file->data() + plan::frameBytes);
  if (auto whole = explain::wholeStep(plan)) {
    tell(*whole, costed);
    costed.isUneven = given.pipeline.fittedLayers.empty() &&
                      !spec.pipeline.fittedLayers.empty();
    for (const plan::Program *program : *plan.programs())
      costed.bytesOfRanks.push_back(
          static_cast<double>(program->arena_bytes()) +
          static_cast<double>(program->workspace_bytes_per_thread()));
    use(plan, whole->machine);
  }
  return costed;
}
} // namespace

Compiled compileWith(ModuleOp model, const spec::Spec &spec, uint32_t ranks,
                     const std::set<size_t> &layers) {
  Compiled compiled;
  auto tellMore = [&](const plan::Plan &plan, const cost::Machine &machine) {
    tellLists(plan, amongRanks(machine, spec.numRanks(), ranks), compiled);
    compiled.toHost = toHostOf(*plan.programs()->Get(0));
    compiled.storedBytes = storedBytes(*plan.programs()->Get(0));
  };
  compiled.costed = compile(model, spec, layers, tellMore);
  return compiled;
}

Costed costOf(ModuleOp model, const spec::Spec &spec) {
  auto noMore = [](const plan::Plan &, const cost::Machine &) {};
  return compile(model, spec, {}, noMore);
}

/// Stages are balanced where nothing limits their memory. The plan's text has
/// the limit, and TOML holds no larger power of two.
Costed costOfBalanced(ModuleOp model, spec::Spec spec) {
  spec.memoryPerRankBytes = uint64_t{1} << 62;
  return costOf(model, spec);
}

} // namespace meshwork::tune
