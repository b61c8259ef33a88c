// Leaves layers of a model out.
#include "dialects/transformer/Facts.h"
#include "passes/memory/Layers.h"
#include "passes/verify/SmallModel.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace meshwork::transformer;
namespace meshwork::verify {
namespace {

/// One layer among the others.
struct Layer {
  SmallVector<Operation *> ops;
  Value entering, leaving; // null: not one
};

std::string kindOf(Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << op->getName();
  for (NamedAttribute attribute : op->getAttrs())
    if (!isa<ParameterOp>(op) && !isa<StringAttr>(attribute.getValue()))
      stream << " " << attribute.getName().getValue() << "="
             << attribute.getValue();
  for (Type type : op->getResultTypes())
    stream << " " << type;
  return text;
}

/// Its ops and what they say, without names.
std::string kindOf(const Layer &layer) {
  std::string text;
  for (Operation *op : layer.ops)
    text += kindOf(op) + "\n";
  return text;
}

class Chain {
public:
  explicit Chain(func::FuncOp loss) : of(loss), layers(of.count()) {
    for (Operation &op : loss.getBody().front())
      if (int64_t at = layerOf(&op);
          at >= 0 && at < static_cast<int64_t>(layers.size()))
        layers[at].ops.push_back(&op);
    for (int64_t at = 0; at < static_cast<int64_t>(layers.size()); ++at)
      findEnds(at);
  }

  std::vector<Layer> &all() { return layers; }
  /// Whether each hands one tensor on.
  bool isWhole() const {
    return llvm::all_of(layers, [](const Layer &layer) {
      return layer.entering && layer.leaving &&
             layer.entering.getType() == layer.leaving.getType();
    });
  }

private:
  /// Parameters that only one layer reads are of that layer.
  int64_t layerOf(Operation *op) const {
    if (std::optional<int64_t> own = transformer::layerOf(op))
      return *own;
    return of.of(op);
  }

  void findEnds(int64_t at) {
    llvm::SetVector<Value> in, out;
    for (Operation *op : layers[at].ops) {
      for (Value operand : op->getOperands())
        if (Operation *maker = operand.getDefiningOp();
            maker && layerOf(maker) < at)
          in.insert(operand);
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) {
              return layerOf(user) > at || layerOf(user) < 0;
            }))
          out.insert(result);
    }
    if (out.size() != 1)
      return;
    layers[at].leaving = out[0];
    // Others, such as tables of positions, are shared by all layers.
    in.remove_if([&](Value value) {
      return value.getType() != out[0].getType() ||
             layerOf(value.getDefiningOp()) < at - 1;
    });
    if (in.size() == 1)
      layers[at].entering = in[0];
  }

  memory::Layers of;
  std::vector<Layer> layers;
};

void leaveOut(Layer &layer) {
  layer.leaving.replaceAllUsesWith(layer.entering);
  for (Operation *op : llvm::reverse(layer.ops))
    op->erase();
}

bool hasOneOf(const Layer &layer, const std::set<std::string> &named) {
  return llvm::any_of(layer.ops, [&](Operation *op) {
    auto parameter = dyn_cast<transformer::ParameterOp>(op);
    return parameter && named.count(parameter.getName().str());
  });
}

/// Which layers stay: the last, those that are named, one of each kind, then
/// the first ones.
std::set<size_t> choose(ArrayRef<Layer> layers, size_t count,
                        const std::set<std::string> &named) {
  std::set<size_t> kept = {layers.size() - 1};
  std::set<std::string> kinds = {kindOf(layers.back())};
  for (auto [i, layer] : llvm::enumerate(layers))
    if (hasOneOf(layer, named)) {
      kept.insert(i);
      kinds.insert(kindOf(layer));
    }
  for (auto [i, layer] : llvm::enumerate(layers))
    if (kept.size() < count && kinds.insert(kindOf(layer)).second)
      kept.insert(i);
  for (size_t i = 0; kept.size() < count; ++i)
    kept.insert(i);
  return kept;
}
} // namespace

int64_t countLayers(func::FuncOp loss) { return memory::Layers(loss).count(); }

std::vector<int64_t> kindsOfLayers(func::FuncOp loss) {
  Chain chain(loss);
  std::map<std::string, int64_t> numbers;
  std::vector<int64_t> kinds;
  if (chain.isWhole())
    for (const Layer &layer : chain.all())
      kinds.push_back(
          numbers.try_emplace(kindOf(layer), numbers.size()).first->second);
  return kinds;
}

static void keep(std::vector<Layer> &layers, const std::set<size_t> &kept) {
  int64_t number = 0;
  for (size_t i : kept) {
    for (Operation *op : layers[i].ops)
      if (auto parameter = dyn_cast<transformer::ParameterOp>(op))
        parameter.setLayer(number);
    ++number;
  }
  // From the end on: what enters a layer may be what another one leaves.
  for (size_t i = layers.size(); i-- > 0;)
    if (!kept.count(i))
      leaveOut(layers[i]);
}

bool keepLayers(func::FuncOp loss, const std::set<size_t> &kept) {
  Chain chain(loss);
  if (chain.isWhole())
    keep(chain.all(), kept);
  return chain.isWhole();
}

bool keepLayers(func::FuncOp loss, int64_t count,
                const std::set<std::string> &named) {
  Chain chain(loss);
  std::vector<Layer> &layers = chain.all();
  if (count >= static_cast<int64_t>(layers.size()))
    return true;
  if (!chain.isWhole())
    return false;
  keep(layers, choose(layers, static_cast<size_t>(count), named));
  return true;
}

} // namespace meshwork::verify
