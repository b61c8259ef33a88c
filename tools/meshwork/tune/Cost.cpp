#include "tools/meshwork/tune/Cost.h"

#include "dialects/transformer/StepFunctions.h"
#include "lib/Explain/Memory.h"
#include "lib/Explain/RankWork.h"
#include "lib/Explain/WholeStep.h"
#include "meshwork/Plan/Frame.h"
#include "passes/codegen/plan/PlanWriter.h"
#include "passes/pipelines/Pipelines.h"
#include "passes/verify/SmallModel.h"
#include "tools/meshwork/driver/Choices.h"
#include "tools/meshwork/driver/Files.h"
#include "tools/meshwork/driver/Model.h"
#include "tools/meshwork/driver/Trial.h"

using namespace mlir;

namespace meshwork::tune {
namespace {

/// As `compile` runs them. What was chosen last may be the plan already.
LogicalResult runPhases(driver::Model &model, spec::Spec &spec) {
  for (const pipelines::Phase &phase : pipelines::phases()) {
    driver::Said unused;
    OwningOpRef<ModuleOp> finished;
    if (failed(driver::chooseBefore(phase.name, model.module(), spec, unused,
                                    finished)))
      return failure();
    if (finished) {
      model.replace(std::move(finished));
      return success();
    }
    if (failed(driver::runPhase(model.module(), spec, phase.name)))
      return failure();
  }
  return success();
}

/// Nothing where there is no plan.
std::optional<std::vector<char>> planOf(driver::Model &model,
                                        spec::Spec &spec) {
  auto emit = [&] { return model.module().emitError(); };
  if (failed(runPhases(model, spec)) ||
      failed(codegen::resolveTarget(spec, "", emit)))
    return std::nullopt;
  FailureOr<std::vector<char>> file =
      codegen::planToEstimate(model.module(), spec);
  if (failed(file))
    return std::nullopt;
  return std::move(*file);
}

/// Of the lists that each microbatch runs; the mean of a step.
double secondsOfMicrobatch(const plan::Plan &plan,
                           const explain::Estimate &estimate) {
  std::vector<explain::RankWork> work = explain::workOfPlan(plan);
  double sum = 0;
  for (const explain::Estimate::OfList &list : estimate.lists)
    if (plan::isOfMicrobatch(work.front().lists[list.list].kind))
      sum += list.seconds;
  return sum / static_cast<double>(std::max<uint64_t>(plan.microbatches(), 1));
}

uint64_t storedBytes(const plan::Program &program) {
  return explain::measureMemory(program, explain::Listing(program))
      .persistentBytes;
}

LogicalResult leaveLayersOut(ModuleOp module, int64_t layers) {
  auto loss = transformer::functionOf(module, transformer::StepFunction::loss);
  return success(loss && verify::keepLayers(loss, layers, {}));
}

void tell(const explain::WholeStep &whole, Costed &costed) {
  costed.status = Costed::done;
  costed.seconds = whole.estimate.step.seconds;
  costed.tokensPerSecond = whole.tokensPerSecond;
  costed.mfu = whole.mfu;
  costed.bytes = whole.peakBytes;
  costed.hostBytes = whole.hostBytes;
  costed.exposed = whole.exposed;
  costed.bubble = whole.bubble;
}
} // namespace

Compiled compileShallow(const std::string &text, const spec::Spec &given,
                        int64_t layers) {
  Compiled compiled;
  Costed &costed = compiled.costed;
  spec::Spec spec = given;
  driver::Model model;
  if (model.readText(text, "the model") != driver::ok)
    return compiled;
  MLIRContext *context = model.module()->getContext();
  context->disableMultithreading(); // Other choices have the other cores.
  driver::QuietTrials trial(context);
  std::optional<std::vector<char>> file;
  if (succeeded(leaveLayersOut(model.module(), layers)))
    file = planOf(model, spec);
  if (!file) {
    costed.status = trial.areRefused() ? Costed::refused : Costed::broken;
    costed.why = trial.firstError();
    return compiled;
  }
  const plan::Plan &plan = *plan::GetPlan(file->data() + plan::frameBytes);
  if (auto whole = explain::wholeStep(plan)) {
    tell(*whole, costed);
    compiled.secondsOfMicrobatch =
        secondsOfMicrobatch(plan, whole->estimate.programs.front());
    compiled.storedBytes = storedBytes(*plan.programs()->Get(0));
  }
  return compiled;
}

Costed costOf(const std::string &text, const spec::Spec &spec) {
  return compileShallow(text, spec, INT64_MAX).costed;
}

} // namespace meshwork::tune
