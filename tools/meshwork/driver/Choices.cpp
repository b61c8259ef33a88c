#include "tools/meshwork/driver/Choices.h"

#include "lib/Cost/OfSpec.h"
#include "lib/Spec/Words.h"
#include "meshwork/Text/Counted.h"
#include "meshwork/Text/NumberRanges.h"
#include "passes/pipelines/Pipelines.h"
#include "tools/meshwork/driver/FitContext.h"
#include "tools/meshwork/driver/FitExperts.h"
#include "tools/meshwork/driver/FitLayers.h"
#include "tools/meshwork/driver/FitRecompute.h"
#include "tools/meshwork/driver/FitSchedule.h"
#include "tools/meshwork/driver/FitZero.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace meshwork::driver {
namespace {

/// A line on stream; what `text` prints.
void say(Said &said, llvm::function_ref<void(llvm::raw_ostream &)> text) {
  llvm::raw_string_ostream stream(said.text);
  stream << "meshwork: ";
  text(stream);
  stream << "\n";
}

/// The plan carries the choice.
LogicalResult chooseContext(ModuleOp module, spec::Spec &spec, Said &said) {
  if (!spec.splits("sequence") || spec.context != spec::Context::byCost)
    return success();
  FailureOr<spec::Context> method = fitContext(module, spec);
  if (failed(method))
    return failure();
  spec.context = *method;
  say(said, [&](auto &os) { os << "context: " << spec::wordOf(spec.context); });
  return success();
}

/// "a step should take 3.1 ms with gathered, 3.4 ms with all_to_all"
std::string timesOf(const ExchangeOfLayers &choice) {
  std::string text;
  llvm::raw_string_ostream os(text);
  const char *between = "a step should take ";
  for (auto [exchange, seconds] :
       {std::pair(spec::Exchange::gathered, choice.gatheredSeconds),
        {spec::Exchange::allToAll, choice.allToAllSeconds}})
    if (seconds) {
      os << between << llvm::format("%.3g ms", *seconds * 1e3) << " with "
         << spec::wordOf(exchange);
      between = ", ";
    }
  return text;
}

/// To the user, and to the plan.
void tell(const ExchangeOfLayers &choice, bool isOnly, Said &said) {
  std::string layers = numberRanges(choice.layers),
              way(spec::wordOf(choice.exchange)), times = timesOf(choice);
  say(said, [&](auto &os) {
    os << "experts" << (isOnly ? "" : " of layers " + layers) << ": " << way
       << (times.empty() ? "" : "; " + times);
  });
  said.choices.push_back(
      {"experts.exchange", way, "layers " + layers + ": " + times});
}

/// How tokens reach experts of other ranks. Where all layers agree, the plan
/// says so in its spec.
LogicalResult chooseExchange(ModuleOp module, spec::Spec &spec, Said &said) {
  if (!spec.splits("experts") ||
      spec.experts.exchange != spec::Exchange::byCost)
    return success();
  auto choices = fitExperts(module, spec);
  if (failed(choices))
    return failure();
  auto isExchanged = [](const ExchangeOfLayers &choice) {
    return choice.exchange == spec::Exchange::allToAll;
  };
  if (llvm::none_of(*choices, isExchanged))
    spec.experts.exchange = spec::Exchange::gathered;
  else if (llvm::all_of(*choices, isExchanged))
    spec.experts.exchange = spec::Exchange::allToAll;
  else
    exchangeTokens(module, *choices, spec.experts.bound);
  for (const ExchangeOfLayers &choice : *choices)
    tell(choice, choices->size() == 1, said);
  return success();
}

/// How weights and gradients are stored, as the spec writes it.
LogicalResult chooseZero(ModuleOp module, spec::Spec &spec, Said &said) {
  if (!spec.zero.hasChoice())
    return success();
  FailureOr<ZeroChoice> choice = fitZero(module, spec);
  if (failed(choice))
    return failure();
  spec.zero = choice->zero;
  say(said, [&](auto &os) {
    for (const char *key : {"zero.gathered", "zero.reduce"})
      if (std::optional<std::string> value = spec::valueOf(spec, key))
        os << key << " = " << *value << "; ";
    os << "a step should take "
       << llvm::format("%.3g ms", choice->seconds * 1e3);
  });
  return success();
}

LogicalResult chooseStages(ModuleOp module, spec::Spec &spec, Said &said,
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

LogicalResult chooseRecompute(ModuleOp module, spec::Spec &spec, Said &said) {
  using spec::Recompute;
  if (spec.recompute != Recompute::byBudget)
    return success();
  FailureOr<std::vector<Recompute>> policies = fitRecompute(module, spec);
  if (failed(policies))
    return failure();
  spec.recomputeOfLayers = *policies;
  say(said, [&](auto &os) {
    os << "recompute:";
    for (Recompute policy : {Recompute::full, Recompute::offload,
                             Recompute::selective, Recompute::none})
      if (int64_t count = llvm::count(*policies, policy))
        os << " " << spec::wordOf(policy) << " in " << counted(count, "layer");
  });
  return success();
}
} // namespace

LogicalResult chooseBefore(StringRef phase, ModuleOp module, spec::Spec &spec,
                           Said &said) {
  OwningOpRef<ModuleOp> unused;
  return chooseBefore(phase, module, spec, said, unused);
}

LogicalResult chooseBefore(StringRef phase, ModuleOp module, spec::Spec &spec,
                           Said &said, OwningOpRef<ModuleOp> &finished) {
  if (phase == "shard")
    return success(succeeded(chooseContext(module, spec, said)) &&
                   succeeded(chooseExchange(module, spec, said)) &&
                   succeeded(chooseZero(module, spec, said)));
  if (phase == "pipeline")
    return chooseStages(module, spec, said, finished);
  if (phase == "recompute")
    return chooseRecompute(module, spec, said);
  return success();
}

FailureOr<Trial> tryChoosing(ModuleOp module, spec::Spec spec,
                             StringRef first) {
  constexpr StringRef last = "recompute"; // of the phases with a choice
  Said said;
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
