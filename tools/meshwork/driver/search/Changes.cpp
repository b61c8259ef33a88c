#include "tools/meshwork/driver/search/Changes.h"

#include "lib/Spec/Words.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using llvm::ArrayRef, llvm::StringRef;

namespace meshwork::driver {
namespace {

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
} // namespace

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
  for (uint32_t micro = spec.batch.micro; micro > 0 && micro % 2 == 0;) {
    micro /= 2;
    changes.push_back(
        {"batch.micro", std::to_string(micro), "smaller products"});
  }
  return changes;
}

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

} // namespace meshwork::driver
