#include "passes/pipeline/EqualLayers.h"

#include "dialects/transformer/Facts.h"
#include "meshwork/Plan/LayerNames.h"
#include "mlir/IR/OperationSupport.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::pipeline {

using analysis::FoldedLayers;

//===-- names
//---------------------------------------------------------------===//

static int64_t distanceOf(int64_t layer, const FoldedLayers &folded,
                          const Distances &distances) {
  if (folded.standsForOthers(layer))
    return distances.own;
  if (folded.isFirstBehind(layer))
    return distances.behind;
  return folded.standsForOthers(layer + folded.period) ? distances.before : 0;
}

LayerNames::LayerNames(const LayerOfParameter &parameters,
                       const FoldedLayers &folded, const Distances &distances)
    : saver(memory), renamer(names) {
  for (auto [name, layer] : parameters)
    if (int64_t distance = distanceOf(layer, folded, distances))
      add(name, layer, distance);
}

void LayerNames::add(StringAttr name, int64_t layer, int64_t distance) {
  StringRef scope = plan::splitAtLayer(name.getValue(), layer).first;
  names.layers[layer] = layer + distance;
  if (!scope.empty())
    names.scopes[scope] =
        saver.save(scope.drop_back(std::to_string(layer).size()) +
                   Twine(layer + distance));
}

//===-- sections
//------------------------------------------------------------===//

static LogicalResult differ(Operation *op) {
  return op->emitOpError("is not the same in all layers");
}

LogicalResult EqualLayers::find() {
  if (failed(findSections()))
    return failure();
  for (const Section &section : sections)
    if (failed(compare(section)))
      return failure();
  return findReaders();
}

EqualLayers::Kind EqualLayers::kindOf(Operation *op) const {
  std::optional<int64_t> layer = layers.of(op);
  return folded.standsForOthers(layer) ? Kind::standing
         : folded.isFirstBehind(layer) ? Kind::behind
                                       : Kind::other;
}

/// Runs of ops of both kinds, which lie side by side: in the order of layers,
/// or in the backward pass against it.
LogicalResult EqualLayers::findSections() {
  SmallVector<std::pair<Kind, SmallVector<Operation *>>> runs;
  for (Operation &op : block) {
    if (runs.empty() || runs.back().first != kindOf(&op))
      runs.emplace_back(kindOf(&op), SmallVector<Operation *>());
    runs.back().second.push_back(&op);
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].first == Kind::other)
      continue;
    bool rises = runs[i].first == Kind::standing;
    if (i + 1 == runs.size() || runs[i + 1].first == Kind::other ||
        runs[i].second.size() != runs[i + 1].second.size())
      return differ(runs[i].second.front());
    sections.push_back({std::move(runs[rises ? i : i + 1].second),
                        std::move(runs[rises ? i + 1 : i].second), rises});
    number(sections.back());
    ++i;
  }
  return success();
}

/// All results get their places before operands are looked at: the backward
/// pass reads what the forward pass has made.
void EqualLayers::number(const Section &section) {
  for (auto [op, other] : llvm::zip_equal(section.ops, section.behind)) {
    for (Value result : op->getResults()) {
      places[result] = values.size();
      values.push_back(result);
    }
    for (Value result : other->getResults()) {
      placesBehind[result] = valuesBehind.size();
      valuesBehind.push_back(result);
    }
  }
}

//===-- what is equal
//-------------------------------------------------------===//

LogicalResult EqualLayers::compare(const Section &section) {
  int64_t period = folded.period;
  LayerNames names(parameters, folded,
                   {(folded.copies + 1) * period, period, period});
  for (auto [op, other] : llvm::zip_equal(section.ops, section.behind))
    if (!areEqual(op, other, *names) || !findSources(op, other))
      return differ(op);
  return success();
}

/// But for the number of the layer that each op may carry.
static bool haveSameAttributes(Operation *op, Operation *other) {
  auto without = [](Operation *op) {
    return llvm::make_filter_range(op->getDiscardableAttrs(),
                                   [](NamedAttribute attribute) {
                                     return attribute.getName() != facts::layer;
                                   });
  };
  return llvm::equal(without(op), without(other)) &&
         op->getName().compareOpProperties(op->getPropertiesStorage(),
                                           other->getPropertiesStorage());
}

bool EqualLayers::areEqual(Operation *op, Operation *other, Renamer &renamer) {
  if (op->getName() != other->getName() ||
      op->getNumOperands() != other->getNumOperands() ||
      op->getNumRegions() != other->getNumRegions() ||
      !llvm::equal(op->getResultTypes(), other->getResultTypes()))
    return false;
  if (!haveSameAttributes(op, other)) {
    if (renamer(op->getAttrDictionary()) != other->getAttrDictionary())
      return false;
    named.insert(op);
  }
  return llvm::all_of(llvm::zip_equal(op->getRegions(), other->getRegions()),
                      [](auto pair) {
                        auto [x, y] = pair;
                        return OperationEquivalence::isRegionEquivalentTo(
                            &x, &y, OperationEquivalence::IgnoreLocations);
                      });
}

bool EqualLayers::findSources(Operation *op, Operation *other) {
  SmallVector<Source> &own = sources[op];
  for (auto [operand, otherOperand] :
       llvm::zip_equal(op->getOpOperands(), other->getOpOperands())) {
    std::optional<Source> source = sourceOf(operand.get(), otherOperand.get());
    if (!source)
      return false;
    own.push_back(*source);
    if (source->copy < 0)
      readBefore.push_back(&otherOperand);
    if (source->copy > 0)
      readBehind.push_back(&operand);
  }
  return true;
}

std::optional<Source> EqualLayers::sourceOf(Value value, Value other) const {
  if (value == other)
    return Source{0, 0, /*isFixed=*/true};
  auto place = places.find(value), placeBehind = placesBehind.find(value),
       otherPlace = places.find(other), otherBehind = placesBehind.find(other);
  if (place != places.end())
    return otherBehind != placesBehind.end() &&
                   place->second == otherBehind->second
               ? std::optional(Source{0, place->second})
               : std::nullopt;
  if (otherPlace != places.end() &&
      isIn(value.getDefiningOp(), folded.first - 2 * folded.period))
    return Source{-1, otherPlace->second};
  if (placeBehind != placesBehind.end() &&
      isIn(other.getDefiningOp(), folded.end() + folded.period))
    return Source{1, placeBehind->second};
  return std::nullopt;
}

/// Whether an op is of the period that begins with a layer.
bool EqualLayers::isIn(Operation *op, int64_t firstLayer) const {
  std::optional<int64_t> layer = layers.of(op);
  return layer && *layer >= firstLayer && *layer < firstLayer + folded.period;
}

//===-- who reads them
//------------------------------------------------------===//

namespace {
/// What ops read of a neighbouring period: their names, and which operand is
/// which value.
using Reads = std::multiset<std::tuple<StringRef, unsigned, size_t>>;

bool note(OpOperand &operand, const llvm::DenseMap<Value, size_t> &places,
          Reads &reads) {
  auto place = places.find(operand.get());
  if (place == places.end())
    return false;
  reads.emplace(operand.getOwner()->getName().getStringRef(),
                operand.getOperandNumber(), place->second);
  return true;
}

Reads readsOf(ArrayRef<OpOperand *> operands,
              const llvm::DenseMap<Value, size_t> &places) {
  Reads reads;
  for (OpOperand *operand : operands)
    note(*operand, places, reads);
  return reads;
}
} // namespace

/// Besides these layers and sums, only the periods next to them may read their
/// values: the same ones that they read of each other.
LogicalResult EqualLayers::findReaders() {
  Reads before, behind;
  for (Operation &op : block) {
    if (kindOf(&op) != Kind::other)
      continue;
    if (auto map = dyn_cast<MapOp>(op); map && addsUp(map)) {
      sums.emplace_back(map);
      continue;
    }
    for (OpOperand &operand : op.getOpOperands())
      if ((note(operand, places, before) &&
           !isIn(&op, folded.first - 2 * folded.period)) ||
          (note(operand, placesBehind, behind) &&
           !isIn(&op, folded.end() + folded.period)))
        return differ(&op);
  }
  if (before != readsOf(readBehind, placesBehind) ||
      behind != readsOf(readBefore, places))
    return differ(sections.front().ops.front());
  return success();
}

} // namespace meshwork::pipeline
