// Most layers of a model are equal. What is asked for sizes and times alone
// compiles a few of them, up to where ops of several layers meet.
#include "dialects/transformer/StepFunctions.h"
#include "dialects/transformer/Transformer.h"
#include "meshwork/Plan/LayerNames.h"
#include "mlir/IR/OperationSupport.h"
#include "passes/analysis/FoldedLayers.h"
#include "passes/pipeline/LayersOfStep.h"
#include "passes/pipeline/Passes.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::pipeline {

#define GEN_PASS_DEF_FOLDLAYERSPASS
#include "passes/pipeline/Passes.h.inc"

namespace {
using analysis::FoldedLayers;

/// Periods that stay before those left out, and behind them: what is next to
/// the embedding or the head may become something else.
constexpr int64_t keptPeriods = 2;

/// @loss as its layers.
class Loss {
public:
  Loss(func::FuncOp function, const LayersOfStep &layers) {
    for (Operation &op : function.getBody().front()) {
      std::optional<int64_t> layer = layers.of(&op);
      if (!layer)
        continue;
      ops.resize(std::max<size_t>(ops.size(), *layer + 1));
      places[&op] = {*layer, ops[*layer].size()};
      ops[*layer].push_back(&op);
    }
  }

  /// Which layers others may stand for: as many as can be.
  FoldedLayers longest() const {
    FoldedLayers best;
    for (int64_t period = 1; period <= FoldedLayers::longestPeriod; ++period)
      if (FoldedLayers found = longestOf(period);
          found.period * found.copies > best.period * best.copies)
        best = found;
    return best;
  }

  /// False, and nothing is changed, where something else reads them.
  bool leaveOut(const FoldedLayers &folded, Block &block) {
    SmallVector<std::pair<OpOperand *, Value>> moved;
    for (Operation &op : block)
      for (OpOperand &operand : op.getOpOperands())
        if (isLeftOut(operand.get().getDefiningOp(), folded) &&
            !isLeftOut(&op, folded)) {
          if (!isBehind(&op, folded))
            return false;
          moved.emplace_back(&operand, before(operand.get(), folded));
        }
    for (auto [operand, value] : moved)
      operand->set(value);
    for (int64_t layer = folded.end(); layer-- > folded.first;)
      for (Operation *op : llvm::reverse(ops[layer]))
        op->erase();
    return true;
  }

private:
  using Place = std::pair<int64_t, size_t>; // layer, and number in it

  int64_t count() const { return static_cast<int64_t>(ops.size()); }

  FoldedLayers longestOf(int64_t period) const {
    FoldedLayers best;
    int64_t begin = 0;
    for (int64_t layer = 0; layer + period <= count(); ++layer) {
      if (layer + period < count() && isSame(layer, layer + period))
        continue;
      int64_t equal = layer - begin + period,
              copies = equal / period - 2 * keptPeriods;
      if (copies > best.copies)
        best = {begin + keptPeriods * period, period, copies};
      begin = layer + 1;
    }
    return best;
  }

  bool isSame(int64_t one, int64_t other) const {
    return ops[one].size() == ops[other].size() &&
           llvm::all_of(llvm::zip_equal(ops[one], ops[other]), [&](auto pair) {
             auto [a, b] = pair;
             return isSame(a, b, other - one);
           });
  }

  bool isSame(Operation *a, Operation *b, int64_t distance) const {
    auto regions = llvm::zip(a->getRegions(), b->getRegions());
    return a->getName() == b->getName() &&
           a->getNumOperands() == b->getNumOperands() &&
           a->getNumRegions() == b->getNumRegions() &&
           llvm::equal(a->getResultTypes(), b->getResultTypes()) &&
           haveSameAttributes(a, b) &&
           llvm::all_of(llvm::zip_equal(a->getOperands(), b->getOperands()),
                        [&](auto pair) {
                          auto [v, w] = pair;
                          return v == w || isMoved(v, w, distance);
                        }) &&
           llvm::all_of(regions, [](auto pair) {
             auto [x, y] = pair;
             return OperationEquivalence::isRegionEquivalentTo(
                 &x, &y, OperationEquivalence::IgnoreLocations);
           });
  }

  /// Whether `w` is to its layer what `v` is to the one `distance` before.
  bool isMoved(Value v, Value w, int64_t distance) const {
    auto from = dyn_cast<OpResult>(v), to = dyn_cast<OpResult>(w);
    if (!from || !to || from.getResultNumber() != to.getResultNumber())
      return false;
    auto one = places.find(from.getOwner()), other = places.find(to.getOwner());
    return one != places.end() && other != places.end() &&
           other->second.first == one->second.first + distance &&
           other->second.second == one->second.second;
  }

  static bool haveSameAttributes(Operation *a, Operation *b) {
    if (auto parameter = dyn_cast<ParameterOp>(a))
      return isSameParameter(parameter, cast<ParameterOp>(b));
    return a->getDiscardableAttrDictionary() ==
               b->getDiscardableAttrDictionary() &&
           a->getName().compareOpProperties(a->getPropertiesStorage(),
                                            b->getPropertiesStorage());
  }

  /// But for the layer and its number in the name.
  static bool isSameParameter(ParameterOp a, ParameterOp b) {
    if (!a.getLayer() || !b.getLayer() ||
        plan::overLayers(a.getName().str(), *a.getLayer()) !=
            plan::overLayers(b.getName().str(), *b.getLayer()))
      return false;
    DictionaryAttr one = a->getAttrDictionary(), other = b->getAttrDictionary();
    return one.size() == other.size() &&
           llvm::all_of(llvm::zip_equal(one, other), [](auto pair) {
             auto [x, y] = pair;
             bool isOfLayer = x.getName() == "name" || x.getName() == "layer";
             return x == y || (isOfLayer && x.getName() == y.getName());
           });
  }

  bool isLeftOut(Operation *op, const FoldedLayers &folded) const {
    auto place = places.find(op);
    return place != places.end() && place->second.first >= folded.first &&
           place->second.first < folded.end();
  }
  bool isBehind(Operation *op, const FoldedLayers &folded) const {
    auto place = places.find(op);
    return place != places.end() && place->second.first >= folded.end();
  }

  /// What is the same of the layers before those left out.
  Value before(Value value, const FoldedLayers &folded) const {
    auto result = cast<OpResult>(value);
    Place place = places.at(result.getOwner());
    int64_t distance = folded.period * folded.copies;
    return ops[place.first - distance][place.second]->getResult(
        result.getResultNumber());
  }

  std::vector<SmallVector<Operation *>> ops; // by layer
  llvm::DenseMap<Operation *, Place> places;
};

struct FoldLayersPass : impl::FoldLayersPassBase<FoldLayersPass> {
  void runOnOperation() override {
    func::FuncOp function = functionOf(getOperation(), StepFunction::loss);
    if (!function)
      return;
    Loss loss(function,
              LayersOfStep(function, layersOfParameters(getOperation())));
    FoldedLayers folded = loss.longest();
    if (folded.copies > 0 && loss.leaveOut(folded, function.getBody().front()))
      folded.note(getOperation());
  }
};
} // namespace
} // namespace meshwork::pipeline
