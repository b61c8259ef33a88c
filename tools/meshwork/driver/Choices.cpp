#include "tools/meshwork/driver/Choices.h"

#include "lib/Cost/OfSpec.h"
#include "lib/Spec/Words.h"
#include "meshwork/Text/Counted.h"
#include "passes/pipelines/Pipelines.h"
#include "tools/meshwork/driver/FitContext.h"
#include "tools/meshwork/driver/FitExperts.h"
#include "tools/meshwork/driver/FitLayers.h"
#include "tools/meshwork/driver/FitRecompute.h"
#include "tools/meshwork/driver/FitSchedule.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace meshwork::driver {
namespace {

/// A line on stream; what `text` prints.
void say(std::string &said,
         llvm::function_ref<void(llvm::raw_ostream &)> text) {
  llvm::raw_string_ostream stream(said);
  stream << "meshwork: ";
  text(stream);
  stream << "\n";
}

/// The plan carries the choice.
LogicalResult chooseContext(ModuleOp module, spec::Spec &spec,
                            std::string &said) {
  if (!spec.splits("sequence") || spec.context != spec::Context::byCost)
    return success();
  FailureOr<spec::Context> method = fitContext(module, spec);
  if (failed(method))
    return failure();
  spec.context = *method;
  say(said, [&](auto &os) { os << "context: " << spec::wordOf(spec.context); });
  return success();
}

/// How tokens reach experts of other ranks, with what each way would take.
LogicalResult chooseExchange(ModuleOp module, spec::Spec &spec,
                             std::string &said) {
  if (!spec.splits("experts") ||
      spec.experts.exchange != spec::Exchange::byCost)
    return success();
  FailureOr<ExchangeTimes> times = fitExperts(module, spec);
  if (failed(times))
    return failure();
  spec.experts.exchange = times->best();
  if (times->gathered || times->allToAll)
    say(said, [&](auto &os) {
      os << "experts: " << spec::wordOf(spec.experts.exchange);
      const char *between = "; a step should take ";
      for (auto [exchange, seconds] :
           {std::pair(spec::Exchange::gathered, times->gathered),
            {spec::Exchange::allToAll, times->allToAll}})
        if (seconds) {
          os << between << llvm::format("%.3g ms", *seconds * 1e3) << " with "
             << spec::wordOf(exchange);
          between = ", ";
        }
    });
  return success();
}

LogicalResult chooseStages(ModuleOp module, spec::Spec &spec, std::string &said,
                           OwningOpRef<ModuleOp> &finished) {
  if (failed(fitLayers(module, spec, finished)))
    return failure();
  if (!spec.pipeline.fittedLayers.empty())
    say(said, [&](auto &os) {
      os << "layers: [";
      llvm::interleaveComma(spec.pipeline.fittedLayers, os);
      os << "], for " << cost::memoryLimit(spec)->from;
    });
  if (failed(fitSchedule(module, spec)))
    return failure();
  if (spec.pipeline.kept > 0)
    say(said, [&](auto &os) {
      os << "schedule: auto; microbatches of a virtual stage that a rank may "
            "keep: "
         << spec.pipeline.kept;
    });
  return success();
}

LogicalResult chooseRecompute(ModuleOp module, spec::Spec &spec,
                              std::string &said) {
  using spec::Recompute;
  if (spec.recompute != Recompute::byBudget)
    return success();
  FailureOr<std::vector<Recompute>> policies = fitRecompute(module, spec);
  if (failed(policies))
    return failure();
  spec.recomputeOfLayers = *policies;
  say(said, [&](auto &os) {
    os << "recompute:";
    for (Recompute policy :
         {Recompute::full, Recompute::selective, Recompute::none})
      if (int64_t count = llvm::count(*policies, policy))
        os << " " << spec::wordOf(policy) << " in " << counted(count, "layer");
  });
  return success();
}
} // namespace

LogicalResult chooseBefore(StringRef phase, ModuleOp module, spec::Spec &spec,
                           std::string &said) {
  OwningOpRef<ModuleOp> unused;
  return chooseBefore(phase, module, spec, said, unused);
}

LogicalResult chooseBefore(StringRef phase, ModuleOp module, spec::Spec &spec,
                           std::string &said, OwningOpRef<ModuleOp> &finished) {
  if (phase == "shard")
    return success(succeeded(chooseContext(module, spec, said)) &&
                   succeeded(chooseExchange(module, spec, said)));
  if (phase == "pipeline")
    return chooseStages(module, spec, said, finished);
  if (phase == "recompute")
    return chooseRecompute(module, spec, said);
  return success();
}

FailureOr<Trial> tryChoosing(ModuleOp module, spec::Spec spec,
                             StringRef first) {
  constexpr StringRef last = "recompute"; // of the phases with a choice
  std::string said;
  auto begin = llvm::find_if(pipelines::phases(), [&](const auto &phase) {
    return phase.name == first;
  });
  for (; begin != pipelines::phases().end(); ++begin) {
    if (failed(chooseBefore(begin->name, module, spec, said)))
      return failure();
    if (begin->name == last)
      break;
    if (failed(runPhase(module, spec, begin->name)))
      return failure();
  }
  return tryPhases(module, spec, last);
}

} // namespace meshwork::driver
