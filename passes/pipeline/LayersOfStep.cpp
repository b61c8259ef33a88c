#include "passes/pipeline/LayersOfStep.h"

#include <set>

#include "dialects/transformer/Facts.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::pipeline {

LayerOfParameter layersOfParameters(ModuleOp module) {
  LayerOfParameter layers;
  for (auto function : module.getOps<func::FuncOp>())
    for (auto parameter : function.getOps<ParameterOp>())
      if (std::optional<int64_t> layer = layerOf(parameter))
        layers[parameter.getNameAttr()] = *layer;
  return layers;
}

LayersOfStep::LayersOfStep(func::FuncOp function,
                           const LayerOfParameter &parameters) {
  Block &block = function.getBody().front();
  auto note = [&](Operation *op, std::optional<int64_t> layer) {
    if (layer)
      layers[op] = *layer;
  };
  for (Operation &op : block.without_terminator()) {
    std::optional<int64_t> layer = told(&op, parameters);
    note(&op, layer ? layer : read(&op));
  }
  for (Operation &op : llvm::reverse(block.without_terminator()))
    if (op.getNumOperands() == 0 && !of(&op))
      note(&op, ofUsers(&op));
}

std::optional<int64_t> LayersOfStep::of(Operation *op) const {
  auto known = layers.find(op);
  return known == layers.end() ? std::nullopt
                               : std::optional<int64_t>(known->second);
}

std::optional<int64_t>
LayersOfStep::told(Operation *op, const LayerOfParameter &parameters) const {
  if (auto own = layerOf(op))
    return own;
  if (!isa<StateOp, AssignOp, AccumulateOp>(op))
    return std::nullopt;
  auto known = parameters.find(op->getAttrOfType<StringAttr>("name"));
  return known == parameters.end() ? std::nullopt
                                   : std::optional<int64_t>(known->second);
}

std::optional<int64_t> LayersOfStep::read(Operation *op) const {
  std::set<int64_t> read;
  for (Value operand : op->getOperands())
    if (std::optional<int64_t> layer = of(operand))
      read.insert(*layer);
  if (read.empty() || read.size() > 2)
    return std::nullopt;
  return *read.rbegin();
}

std::optional<int64_t> LayersOfStep::ofUsers(Operation *op) const {
  std::optional<int64_t> layer;
  for (Operation *user : op->getUsers()) {
    std::optional<int64_t> own = of(user);
    if (!own || (layer && *layer != *own))
      return std::nullopt;
    layer = own;
  }
  return layer;
}

} // namespace meshwork::pipeline
