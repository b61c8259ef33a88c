#include "dialects/transformer/Facts.h"
#include "dialects/transformer/StepFunctions.h"
#include "dialects/transformer/Transformer.h"
#include "passes/pipeline/Stages.h"
#include "passes/verify/SmallModel.h"
#include "tools/meshwork/driver/Files.h"
#include "tools/meshwork/driver/Guard.h"
#include "tools/meshwork/driver/Model.h"
#include "tools/meshwork/driver/SpecErrors.h"
#include "tools/meshwork/driver/Trial.h"
#include "tools/meshwork/tune/Body.h"
#include "tools/meshwork/tune/Cost.h"

#include <cstdio>
#include <map>

using namespace mlir;

namespace meshwork::tune {
namespace {

void countParameters(ModuleOp module, Facts &facts) {
  auto loss = transformer::functionOf(module, transformer::StepFunction::loss);
  if (!loss)
    return;
  std::map<int64_t, double> ofLayers;
  loss.walk([&](transformer::ParameterOp op) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    auto elements = static_cast<double>(type.getNumElements());
    facts.parameters += elements;
    if (std::optional<int64_t> layer = transformer::layerOf(op))
      ofLayers[*layer] += elements;
  });
  facts.layers = verify::countLayers(loss);
  facts.kinds = verify::countKinds(loss);
  for (auto [layer, elements] : ofLayers)
    facts.parametersOfLayer = std::max(facts.parametersOfLayer, elements);
  facts.leastOfLayer = facts.parametersOfLayer;
  for (auto [layer, elements] : ofLayers)
    facts.leastOfLayer = std::min(facts.leastOfLayer, elements);
}

/// Of a step of one sequence, after autodiff.
void countFlops(ModuleOp module, Facts &facts) {
  auto microbatch = transformer::microbatchOf(module);
  if (!microbatch)
    return;
  SmallVector<double> ofLayers = pipeline::LayersOfOps(microbatch).flops();
  facts.flopsOfLayers.assign(ofLayers.begin(), ofLayers.end());
  microbatch.walk([&](transformer::FactorOpInterface op) {
    auto flops = static_cast<double>(op.getFlops());
    bool isAttention =
        isa<transformer::AttentionOp, transformer::AttentionGradOp>(*op);
    (isAttention ? facts.attentionFlops : facts.flops) += flops;
    facts.hasAttention |= isAttention;
    facts.hasExperts |= isa<transformer::ExpertsOp>(*op);
  });
}

/// Of models whose layers are all alike.
bool addShallow(Facts &facts) {
  if (facts.kinds != 1 || facts.layers <= moreLayers)
    return true;
  for (int64_t layers : {fewLayers, moreLayers}) {
    driver::Model model;
    if (model.readText(facts.text, "the model") != driver::ok)
      return false;
    auto loss = transformer::functionOf(model.module(),
                                        transformer::StepFunction::loss);
    if (!loss || !verify::keepLayers(loss, layers, {}))
      return false;
    llvm::raw_string_ostream(facts.shallow[layers]) << model.module();
  }
  return true;
}

int look(driver::Model &model, const spec::Result &spec, Facts &facts) {
  driver::SpecErrors ofSpec(model.module()->getContext(), *spec.spec,
                            spec.origins);
  countParameters(model.module(), facts);
  facts.text = model.text();
  bool fine = succeeded(driver::runPhase(model.module(), *spec.spec, "input"));
  driver::endReading();
  fine =
      fine && succeeded(driver::runPhase(model.module(), *spec.spec, "step"));
  if (!fine)
    return ofSpec.any() ? driver::badSpec : driver::badData;
  countFlops(model.module(), facts);
  return addShallow(facts) ? driver::ok : driver::internal;
}

std::string contentOf(std::FILE *file) {
  std::string content;
  std::rewind(file);
  char buffer[1 << 14];
  while (size_t got = std::fread(buffer, 1, sizeof(buffer), file))
    content.append(buffer, got);
  return content;
}
} // namespace

int readFacts(const std::string &modelText, const std::string &path,
              const spec::Result &spec, Facts &facts) {
  std::FILE *file = std::tmpfile(); // which the child fills
  if (!file)
    return driver::report(
        absl::ResourceExhaustedError("cannot create a temporary file"));
  int code = driver::guarded([&]() -> int {
    driver::beginReading(path, driver::badData, modelText.size());
    driver::Model model;
    Facts found;
    if (int wrong = model.read(modelText, path); wrong != driver::ok)
      return wrong;
    if (int wrong = look(model, spec, found); wrong != driver::ok)
      return wrong;
    std::string json = toJson(found);
    bool isWritten =
        std::fwrite(json.data(), 1, json.size(), file) == json.size() &&
        std::fflush(file) == 0;
    return isWritten ? driver::ok : driver::inputOutput;
  });
  if (code == driver::ok)
    facts = factsFromJson(contentOf(file));
  std::fclose(file);
  return code;
}

} // namespace meshwork::tune
