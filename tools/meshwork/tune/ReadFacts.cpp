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
#include "tools/meshwork/tune/Cost.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <set>

using namespace mlir;

namespace meshwork::tune {

bool keepLayers(ModuleOp module, const std::set<size_t> &layers) {
  auto loss = transformer::functionOf(module, transformer::StepFunction::loss);
  return loss && verify::keepLayers(loss, layers);
}

/// The text with those layers alone; nothing where they cannot be cut out.
static std::optional<std::string> textWith(const std::string &text,
                                           const std::set<size_t> &layers) {
  driver::Model model;
  if (model.readText(text, "the model") != driver::ok ||
      !keepLayers(model.module(), layers))
    return std::nullopt;
  std::string shallow;
  llvm::raw_string_ostream(shallow) << model.module();
  return shallow;
}

namespace {

double elementsIn(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape()
             ? static_cast<double>(type.getNumElements())
             : 0;
}

double elementsOf(Operation *parameter) {
  return elementsIn(parameter->getResult(0));
}

/// Of a parameter, the dim that most powers of two divide.
int64_t evenestDim(Value parameter) {
  int64_t evenest = 0;
  auto evenness = [](int64_t dim) { return dim & -dim; };
  for (int64_t dim : cast<ShapedType>(parameter.getType()).getShape())
    if (evenness(dim) >= evenness(evenest))
      evenest = dim;
  return evenest;
}

void countParameters(ModuleOp module, Facts &facts) {
  auto loss = transformer::functionOf(module, transformer::StepFunction::loss);
  if (!loss)
    return;
  std::map<int64_t, double> ofLayers;
  std::map<int64_t, std::map<double, int64_t>> sizes;
  loss.walk([&](transformer::ParameterOp op) {
    double elements = elementsOf(op);
    facts.parameters += elements;
    ++facts.sizes[elements];
    facts.dimOfAll = std::gcd(facts.dimOfAll, evenestDim(op.getResult()));
    if (std::optional<int64_t> layer = transformer::layerOf(op)) {
      ofLayers[*layer] += elements;
      ++sizes[*layer][elements];
    }
  });
  facts.layers = verify::countLayers(loss);
  for (auto [layer, elements] : ofLayers)
    if (facts.sizesOfLayer.empty() || elements < facts.leastOfLayer) {
      facts.leastOfLayer = elements;
      facts.sizesOfLayer = sizes[layer];
    }
}

/// Whether some forward op of the first layer, or of none, reads it.
bool isInFirstStage(Operation *parameter, const pipeline::LayersOfOps &layers) {
  return llvm::any_of(parameter->getUsers(), [&](Operation *user) {
    return !layers.isInBackward(user) && layers.of(user).value_or(0) == 0;
  });
}

/// Elements that forward ops of a layer or of earlier ones hand to later ones,
/// where these are fewest.
double crossingOf(func::FuncOp microbatch,
                  const pipeline::LayersOfOps &layers) {
  std::vector<double> behind(std::max<int64_t>(layers.count() - 1, 0), 0);
  for (Operation &op : microbatch.getBody().front()) {
    std::optional<int64_t> first = layers.of(&op);
    if (!first || layers.isInBackward(&op))
      continue;
    for (Value value : op.getResults()) {
      int64_t last = *first;
      for (Operation *user : value.getUsers())
        if (!layers.isInBackward(user))
          last = std::max(last, layers.of(user).value_or(0));
      for (int64_t layer = *first; layer < last; ++layer)
        behind[layer] += elementsIn(value);
    }
  }
  return behind.empty() ? 0 : *llvm::min_element(behind);
}

/// Of a step of one sequence, after autodiff.
void countStages(func::FuncOp microbatch, Facts &facts) {
  pipeline::LayersOfOps layers(microbatch);
  SmallVector<double> ofLayers = layers.flops();
  facts.flopsOfLayers.assign(ofLayers.begin(), ofLayers.end());
  facts.crossing = crossingOf(microbatch, layers);
  for (Operation &op : microbatch.getBody().front())
    if (isa<transformer::ParameterOp>(op) && !transformer::layerOf(&op))
      (isInFirstStage(&op, layers) ? facts.ofFirstStage : facts.ofLastStage) +=
          elementsOf(&op);
}

void countFlops(ModuleOp module, Facts &facts) {
  auto microbatch = transformer::microbatchOf(module);
  if (!microbatch)
    return;
  countStages(microbatch, facts);
  microbatch.walk([&](transformer::FactorOpInterface op) {
    auto flops = static_cast<double>(op.getFlops());
    bool isAttention =
        isa<transformer::AttentionOp, transformer::AttentionGradOp>(*op);
    (isAttention ? facts.attentionFlops : facts.flops) += flops;
    facts.hasAttention |= isAttention;
    facts.hasExperts |= isa<transformer::ExpertsOp>(*op);
  });
}

/// Numbers of layers of one kind, the last of all before the others.
std::vector<size_t> layersOf(const std::vector<int64_t> &kinds, int64_t kind) {
  std::vector<size_t> layers;
  for (size_t i = 0; i < kinds.size(); ++i)
    if (kinds[i] == kind)
      layers.push_back(i);
  if (kinds.back() == kind)
    std::rotate(layers.begin(), layers.end() - 1, layers.end());
  return layers;
}

constexpr int64_t fewOfKind = 2;
constexpr size_t mostKinds = 4; // more take as long as all layers would

/// Texts with few layers, of a model that has more.
bool addShallow(const std::vector<int64_t> &kindOfLayer, Facts &facts) {
  std::set<int64_t> numbers(kindOfLayer.begin(), kindOfLayer.end());
  auto most = static_cast<int64_t>(numbers.size()) * fewOfKind + layersMore;
  if (numbers.empty() || numbers.size() > mostKinds || facts.layers <= most)
    return true;
  std::set<size_t> base;
  std::vector<std::vector<size_t>> all;
  for (int64_t kind : numbers) {
    all.push_back(layersOf(kindOfLayer, kind));
    size_t few = std::min<size_t>(fewOfKind, all.back().size());
    base.insert(all.back().begin(), all.back().begin() + few);
    facts.kinds.push_back({static_cast<int64_t>(all.back().size()),
                           static_cast<int64_t>(few), ""});
  }
  std::optional<std::string> text = textWith(facts.text, base);
  for (size_t kind = 0; text && kind < all.size(); ++kind) {
    if (facts.kinds[kind].layers < fewOfKind + layersMore)
      continue;
    std::set<size_t> deeper = base;
    deeper.insert(all[kind].begin() + fewOfKind,
                  all[kind].begin() + fewOfKind + layersMore);
    std::optional<std::string> more = textWith(facts.text, deeper);
    facts.kinds[kind].deeper = more.value_or("");
    if (!more)
      return false;
  }
  facts.shallow = text.value_or("");
  facts.kindOfLayer = kindOfLayer;
  return text.has_value();
}

std::vector<int64_t> kindsIn(ModuleOp module) {
  auto loss = transformer::functionOf(module, transformer::StepFunction::loss);
  return loss ? verify::kindsOfLayers(loss) : std::vector<int64_t>();
}

int look(driver::Model &model, const spec::Result &spec, Facts &facts) {
  driver::SpecErrors ofSpec(model.module()->getContext(), *spec.spec,
                            spec.origins);
  countParameters(model.module(), facts);
  facts.text = model.text();
  std::vector<int64_t> kinds = kindsIn(model.module());
  facts.vocabulary = static_cast<uint32_t>(model.vocabulary());
  bool fine = succeeded(driver::runPhase(model.module(), *spec.spec, "input"));
  driver::endReading();
  fine =
      fine && succeeded(driver::runPhase(model.module(), *spec.spec, "step"));
  if (!fine)
    return ofSpec.any() ? driver::badSpec : driver::badData;
  countFlops(model.module(), facts);
  return addShallow(kinds, facts) ? driver::ok : driver::internal;
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
