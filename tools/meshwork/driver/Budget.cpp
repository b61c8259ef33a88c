// Changes are not estimated: each is compiled, up to the arena.
#include "tools/meshwork/driver/Budget.h"

#include "lib/Cost/OfSpec.h"
#include "lib/Explain/Estimate.h"
#include "lib/Explain/Explain.h"
#include "lib/Explain/Format.h"
#include "lib/Explain/HostUse.h"
#include "lib/Spec/Words.h"
#include "passes/pipelines/Pipelines.h"
#include "tools/meshwork/driver/Choices.h"
#include "tools/meshwork/driver/Files.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace meshwork::driver {
namespace {

struct Change {
  std::string key, value;
  const char *price;
};

std::vector<std::string> axesOf(const spec::Spec &spec, StringRef dim) {
  for (const spec::ShardRule &rule : spec.shard)
    if (rule.dim == dim)
      return rule.axes;
  return {};
}

uint64_t ranksOf(const spec::Spec &spec, ArrayRef<std::string> axes) {
  uint64_t ranks = 1;
  for (const spec::Axis &axis : spec.mesh)
    if (llvm::is_contained(axes, axis.name))
      ranks *= axis.size;
  return ranks;
}

/// In the order to try them: what estimates leave out counts too, that small
/// products reach less of the peak.
std::vector<Change> changesOf(const spec::Spec &spec) {
  std::vector<Change> changes;
  std::vector<std::string> tensor = axesOf(spec, "heads");
  if (ranksOf(spec, tensor) > 1 && axesOf(spec, "residual_sequence").empty())
    changes.push_back({"shard.residual_sequence",
                       "[\"" + llvm::join(tensor, "\", \"") + "\"]",
                       "sends the same bytes"});
  auto addStage = [&](uint32_t stage, const char *price) {
    if (spec.dataParallel() > 1 && spec.zero.stage < stage)
      changes.push_back({"zero.stage", std::to_string(stage), price});
  };
  addStage(1, "sends the same bytes");
  addStage(2, "sends the same bytes, each microbatch");
  auto addPolicy = [&](spec::Recompute policy, const char *price) {
    if (spec.recompute < policy)
      changes.push_back({"recompute.policy", spec::wordOf(policy), price});
  };
  addPolicy(spec::Recompute::selective, "computes attention and norms again");
  addPolicy(spec::Recompute::full, "computes the forward pass again");
  if (spec.zero.stage == 3 && !spec.zero.gatheredOnce().empty())
    changes.push_back(
        {"zero.gathered", "free", "gathers weights over all axes each time"});
  if (spec.zero.reduce == spec::Reduce::step)
    changes.push_back(
        {"zero.reduce", "microbatch", "reduces gradients in each microbatch"});
  addStage(3, "sends weights twice more each microbatch");
  if (!spec.offload.optimizer && spec.device != spec::Device::cpu)
    changes.push_back({"offload.optimizer", "true",
                       "moves the optimizer's states to the host and back"});
  for (uint32_t micro = spec.batch.micro; micro % 2 == 0;) {
    micro /= 2;
    changes.push_back(
        {"batch.micro", std::to_string(micro), "smaller products"});
  }
  return changes;
}

/// What makes less of a rank lie in the host's memory.
std::vector<Change> hostChangesOf(const spec::Spec &spec) {
  std::vector<Change> changes;
  if (spec.dataParallel() > 1 && spec.zero.stage == 0)
    changes.push_back({"zero.stage", "1", "sends the same bytes"});
  if (spec.recompute == spec::Recompute::offload)
    for (auto policy : {spec::Recompute::selective, spec::Recompute::full})
      changes.push_back({"recompute.policy", spec::wordOf(policy),
                         "keeps activations out of the host's memory"});
  return changes;
}

/// `mesh.axes` with half of an axis that splits samples on `axis` instead,
/// which is made where there is none: the outermost, of a pipeline, or the
/// innermost.
std::optional<std::string> meshWithHalfOn(const spec::Spec &spec,
                                          StringRef axis, bool isOutermost) {
  std::vector<spec::Axis> mesh = spec.mesh;
  std::vector<std::string> data = axesOf(spec, "batch");
  auto halved = llvm::find_if(mesh, [&](const spec::Axis &one) {
    return llvm::is_contained(data, one.name) && one.size % 2 == 0;
  });
  if (halved == mesh.end())
    return std::nullopt;
  halved->size /= 2;
  auto known = llvm::find_if(
      mesh, [&](const spec::Axis &one) { return one.name == axis; });
  if (known != mesh.end())
    known->size *= 2;
  else
    mesh.insert(isOutermost ? mesh.begin() : mesh.end(), {axis.str(), 2});
  std::string text;
  for (const spec::Axis &one : mesh)
    text += (text.empty() ? "[\"" : ", \"") + one.name + "=" +
            std::to_string(one.size) + "\"";
  return text + "]";
}

/// The same ranks, otherwise arranged; each alone, as they exclude each other.
std::vector<Change> otherMeshes(const spec::Spec &spec) {
  std::vector<Change> changes;
  auto add = [&](StringRef axis, bool isOutermost, const char *price) {
    if (auto mesh = meshWithHalfOn(spec, axis, isOutermost))
      changes.push_back({"mesh.axes", *mesh, price});
  };
  add("tp", false, "activations travel in each layer");
  add("pp", true, "stages wait for each other");
  return changes;
}

/// What a rank needs and takes with some keys changed. What is "auto" is chosen
/// for them. Nothing when that does not compile.
std::optional<Trial> tryWith(const Model &model, const spec::Spec &spec,
                             const std::vector<std::string> &overrides) {
  spec::Result changed = spec::parse(spec::print(spec), "", overrides);
  Model copy;
  if (!changed.spec || copy.readText(model.text(), "") != ok)
    return std::nullopt;
  ScopedDiagnosticHandler quiet(copy.module()->getContext(),
                                [](mlir::Diagnostic &) { return success(); });
  FailureOr<Trial> tried = tryChoosing(copy.module(), *changed.spec,
                                       pipelines::phases().front().name);
  return failed(tried) ? std::nullopt : std::optional<Trial>(*tried);
}

/// What a plan may need of one kind of memory, and what of a trial that is.
struct Limit {
  uint64_t bytes;
  uint64_t Trial::*needed;

  bool holds(const Trial &trial) const { return trial.*needed <= bytes; }
  /// "1.21 KiB = 1234 bytes, fits, about 5.67 ms a step".
  std::string textOf(const Trial &trial) const {
    return llvm::formatv(
        "{0}{1}, about {2} a step", explain::exactBytesText(trial.*needed),
        holds(trial) ? ", fits" : "", explain::timeText(trial.seconds));
  }
};

class Advice {
public:
  Advice(const Model &model, const spec::Spec &spec, Limit limit)
      : model(model), spec(spec), limit(limit) {}

  std::string run(ArrayRef<Change> changes) {
    text = "changes of the spec, in the order to try them:\n";
    if (tryEach(changes))
      return text;
    std::optional<Trial> together =
        all.size() > 1 ? tryWith(model, spec, all) : std::nullopt;
    if (together)
      text += "  all of these: " + limit.textOf(*together) + "\n";
    if (together && limit.holds(*together))
      return text + "none fits alone\n";
    if (tryEach(otherMeshes(spec)))
      return text;
    return text + "none fits; use more ranks on the axes that split weights, "
                  "a shorter batch.sequence, or a larger budget\n";
  }

private:
  /// Up to the first that fits alone; whether one does.
  bool tryEach(ArrayRef<Change> changes) {
    for (const Change &change : changes) {
      std::string override = change.key + "=" + change.value;
      std::optional<Trial> tried = tryWith(model, spec, {override});
      if (!tried)
        continue;
      all.push_back(override);
      text += llvm::formatv("  {0} = {1}: {2}, {3}\n", change.key, change.value,
                            limit.textOf(*tried), change.price);
      if (!limit.holds(*tried))
        continue;
      text += "--set '" + override + "' is the cheapest that fits\n";
      return true;
    }
    return false;
  }

  const Model &model;
  const spec::Spec &spec;
  Limit limit;
  std::vector<std::string> all; // that were tried
  std::string text;
};
} // namespace

/// Of a pipeline whose layers could go elsewhere.
static std::string layersText(const spec::Spec &spec) {
  if (spec.pipeline.fittedLayers.empty())
    return "";
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "no layout of the layers fits that was tried; the nearest, "
            "pipeline.layers = [";
  llvm::interleaveComma(spec.pipeline.fittedLayers, stream);
  stream << "], is the one of this error\n";
  return text;
}

std::string memoryError(const plan::Plan &plan, const Model &model,
                        const spec::Spec &spec, uint64_t peakBytes) {
  cost::MemoryLimit limit = *cost::memoryLimit(spec);
  std::string text =
      llvm::formatv("meshwork: error: {0}: each rank needs {1}, "
                    "expected at most {2}\n",
                    limit.from, explain::exactBytesText(peakBytes),
                    explain::exactBytesText(limit.bytes));
  return text + explain::peakMemory(plan) + "\n" + layersText(spec) +
         Advice(model, spec, {limit.bytes, &Trial::bytes}).run(changesOf(spec));
}

std::string hostMemoryError(const plan::Plan &plan, const Model &model,
                            const spec::Spec &spec, uint64_t hostBytes) {
  std::string text = llvm::formatv(
      "meshwork: error: offload.host_memory_per_rank: each rank keeps {0} in "
      "the host's memory ({1}), expected at most {2}\n",
      explain::exactBytesText(hostBytes), explain::kindsOnHost(plan),
      explain::exactBytesText(*spec.offload.hostBytes));
  return text +
         Advice(model, spec, {*spec.offload.hostBytes, &Trial::hostBytes})
             .run(hostChangesOf(spec));
}

} // namespace meshwork::driver
