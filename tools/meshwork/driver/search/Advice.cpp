#include "tools/meshwork/driver/search/Advice.h"

#include "lib/Explain/Estimate.h"
#include "lib/Explain/Format.h"
#include "passes/pipelines/Pipelines.h"
#include "tools/meshwork/driver/Choices.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace meshwork::driver {
namespace {

using Way = std::vector<Change>; // that are made together

class Advice {
public:
  Advice(ModuleOp model, const spec::Spec &asked, const SpecWith &specWith,
         AdviceLimit limit, const std::vector<Change> &changes)
      : copies{model, pipelines::phases().front().name, tryChoosing},
        asked(asked), specWith(specWith), limit(limit) {
    for (const Change &change : changes)
      ways.push_back({change});
    numAlone = ways.size();
  }

  std::string run() {
    ScopedDiagnosticHandler quiet(copies.module.getContext(),
                                  [](mlir::Diagnostic &) {});
    auto tried =
        tryWays<Way>([&](ArrayRef<Tried<Way>> before) { return next(before); },
                     [&](const Way &way) { return compile(way); });
    std::string text = "changes of the spec, in the order to try them:\n";
    for (const Tried<Way> &one : *tried)
      if (one.trial)
        text += lineOf(one.way, *one.trial);
    if (tried->empty() || !holds(tried->back()))
      return text + "none fits; use more ranks on the axes that split weights, "
                    "a shorter batch.sequence, or a larger budget\n";
    const Way &best = tried->back().way;
    return text + (best.size() > 1 ? "none fits alone\n"
                                   : "--set '" + best.front().setting() +
                                         "' is the cheapest that fits\n");
  }

private:
  std::optional<Way> next(ArrayRef<Tried<Way>> tried) {
    if (!tried.empty() && holds(tried.back()))
      return std::nullopt;
    if (tried.size() == numAlone)
      addOthers(tried);
    return tried.size() < ways.size() ? std::optional(ways[tried.size()])
                                      : std::nullopt;
  }

  bool holds(const Tried<Way> &one) const {
    return one.trial && limit.holds(*one.trial);
  }

  /// All that compile alone, together; and meshes.
  void addOthers(ArrayRef<Tried<Way>> tried) {
    Way together;
    for (const Tried<Way> &one : tried)
      if (one.trial)
        together.push_back(one.way.front());
    if (together.size() > 1)
      ways.push_back(together);
    for (const Change &change : otherMeshes(asked))
      ways.push_back({change});
  }

  /// A fault of the compiler is no advice either.
  Outcome compile(const Way &way) const {
    std::vector<std::string> settings;
    for (const Change &change : way)
      settings.push_back(change.setting());
    std::optional<spec::Spec> spec = specWith(settings);
    if (!spec)
      return std::optional<Trial>();
    if (spec->batch.micro == 0)
      return bestMicro(copies.module, spec->batch.global / spec->dataParallel(),
                       specWith, settings)
          .trial;
    Outcome outcome = copies.compile(*spec);
    return succeeded(outcome) ? *outcome : std::nullopt;
  }

  /// "  zero.stage = 1: 1.21 KiB = 1234 bytes, fits, about 5.67 ms a step, ..."
  std::string lineOf(const Way &way, const Trial &trial) const {
    const Change &change = way.front();
    bool isAlone = way.size() == 1;
    return llvm::formatv(
        "  {0}: {1}{2}, about {3} a step{4}\n",
        isAlone ? change.key + " = " + change.value : "all of these",
        explain::exactBytesText(trial.*limit.needed),
        limit.holds(trial) ? ", fits" : "", explain::timeText(trial.seconds),
        isAlone ? std::string(", ") + change.price : "");
  }

  Copies copies;
  const spec::Spec &asked;
  const SpecWith &specWith;
  AdviceLimit limit;
  std::vector<Way> ways;
  size_t numAlone = 0;
};
} // namespace

std::string advice(ModuleOp model, const spec::Spec &asked,
                   const SpecWith &specWith, AdviceLimit limit,
                   const std::vector<Change> &changes) {
  return Advice(model, asked, specWith, limit, changes).run();
}

} // namespace meshwork::driver
