#include "passes/analysis/CopiedParameter.h"

#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Transformer.h"

using namespace mlir;
namespace meshwork::analysis {
namespace {
using namespace transformer;

int64_t dimsIn(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getRank() : 0;
}

/// The one operand of the result's dims: the others are scales.
Value mapped(MapOp map) {
  Value found;
  for (Value operand : map->getOperands())
    if (dimsIn(operand) == dimsIn(map->getResult(0))) {
      if (found)
        return Value();
      found = operand;
    }
  return found;
}

/// What a copy is made of; null of what is no copy.
Value copied(Operation *op) {
  if (isa<mesh::CollectiveOpInterface>(op) && op->getNumOperands() == 1)
    return op->getOperand(0);
  auto map = dyn_cast<MapOp>(op);
  return map ? mapped(map) : Value();
}
} // namespace

StringAttr copiedParameter(Value value) {
  while (Operation *op = value ? value.getDefiningOp() : nullptr) {
    if (auto parameter = dyn_cast<ParameterOp>(op))
      return parameter.getNameAttr();
    value = copied(op);
  }
  return StringAttr();
}

} // namespace meshwork::analysis
