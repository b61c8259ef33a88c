// Layers are not ops: parameters tell theirs, and ops follow their operands.
#include "passes/memory/Layers.h"

#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Facts.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::memory {

static constexpr int64_t before = -1;

Layers::Layers(func::FuncOp function) {
  Block &block = function.getBody().front();
  findStatics(block);
  for (Operation &op : block)
    if (auto parameter = dyn_cast<transformer::ParameterOp>(op)) {
      layer[&op] = layerOf(&op).value_or(before);
      numLayers = std::max(numLayers, layer[&op] + 1);
    }
  for (Operation &op : block)
    if (!isBackward(&op) && !isa<transformer::ParameterOp>(op))
      layer[&op] = atLeast(&op);
  sinkBetweenLayers(block);
}

void Layers::findStatics(Block &block) {
  for (Operation &op : block) {
    auto isIn = [&](auto &set) {
      return [&set](Value v) { return set.contains(v.getDefiningOp()); };
    };
    if (op.getNumResults() != 0 && !isa<mesh::ReceiveOp>(op) &&
        llvm::all_of(op.getOperands(), isIn(statics)))
      statics.insert(&op);
    if (isa<transformer::ParameterOp>(op) ||
        (isStatic(&op) && llvm::any_of(op.getOperands(), isIn(weights))))
      weights.insert(&op);
  }
}

/// The layer that the operands demand.
int64_t Layers::atLeast(Operation *op) const {
  int64_t result = before;
  bool readsUnnumbered = false;
  for (Value operand : op->getOperands()) {
    int64_t source = layer.lookup_or(operand.getDefiningOp(), before);
    result = std::max(result, source);
    readsUnnumbered |=
        source == before && weights.contains(operand.getDefiningOp());
  }
  return readsUnnumbered && result > before ? numLayers : result;
}

/// Whether a layer after `own` reads `value`, apart from `but`.
bool Layers::isReadAfter(Value value, int64_t own, Operation *but) const {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    return user != but && !isBackward(user) && layer.lookup_or(user, own) > own;
  });
}

bool Layers::crosses(Value value) const {
  return isReadAfter(value, of(value.getDefiningOp()));
}

/// Ops whose operands all cross anyway move to the layer that needs them, if
/// no earlier one does.
void Layers::sinkBetweenLayers(Block &block) {
  llvm::DenseMap<Operation *, int64_t> neededIn;
  for (Operation &op : llvm::reverse(block)) {
    std::optional<int64_t> earliest;
    for (Operation *user : op.getUsers())
      if (auto known = neededIn.find(user); known != neededIn.end())
        earliest = std::min(earliest.value_or(known->second), known->second);
    // What reads a weight of its layer stays there.
    bool isTied = llvm::any_of(op.getOperands(), [&](Value v) {
      return weights.contains(v.getDefiningOp());
    });
    if (!isBackward(&op) && !isStatic(&op))
      neededIn[&op] =
          isTied ? of(&op) : std::max(of(&op), earliest.value_or(before));
  }
  for (Operation &op : block) {
    if (!neededIn.contains(&op))
      continue;
    layer[&op] = std::max(of(&op), atLeast(&op));
    auto crossesAnyway = [&](Value operand) {
      return isStatic(operand.getDefiningOp()) ||
             isReadAfter(operand, of(&op), &op);
    };
    if (llvm::all_of(op.getOperands(), crossesAnyway))
      layer[&op] = neededIn[&op];
  }
}

} // namespace meshwork::memory
