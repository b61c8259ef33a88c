#include "passes/fusion/Remainder.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::fusion {

Remainder remainderOf(FusedOp cluster, ArrayRef<unsigned> results,
                      const llvm::SmallDenseSet<Value> &outside) {
  Operation *yield = cluster.getBody().front().getTerminator();
  Remainder rest;
  SmallVector<Value> work;
  for (unsigned result : results) {
    rest.results.push_back(result);
    work.push_back(yield->getOperand(result));
  }
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || outside.contains(value))
      rest.leaves.insert(value);
    else if (rest.members.insert(op))
      llvm::append_range(work, op->getOperands());
  }
  return rest;
}

/// A cluster that only maps, without a value that lacks a dim, is a flat loop.
static bool isFlat(FusedOp cluster, const Remainder &rest) {
  auto space = tensorType(cluster.getResult(rest.results[0]));
  auto isWhole = [&](Value value) {
    return tensorType(value).getShape() == space.getShape() &&
           dimsOf(value) == dimsOf(space);
  };
  auto isMap = [&](Operation *op) {
    return isa<MapOp>(op) && llvm::all_of(op->getResults(), isWhole) &&
           !op->walk([](Operation *inner) {
                return isa<IndexOp, DrawOpInterface>(inner)
                           ? WalkResult::interrupt()
                           : WalkResult::advance();
              }).wasInterrupted();
  };
  return llvm::all_of(rest.members, isMap) &&
         llvm::all_of(rest.leaves, isWhole);
}

void rebuild(FusedOp cluster, const Remainder &rest,
             const DenseMap<Value, Value> &values) {
  Block &body = cluster.getBody().front();
  SmallVector<Value> inputs;
  SmallVector<Type> types;
  for (Value leaf : rest.leaves) {
    auto argument = dyn_cast<BlockArgument>(leaf);
    inputs.push_back(argument ? cluster.getInputs()[argument.getArgNumber()]
                              : values.lookup(leaf));
  }
  for (unsigned result : rest.results)
    types.push_back(cluster.getResult(result).getType());
  OpBuilder builder(cluster);
  DimsAttr rows = cluster.getRows(), columns = cluster.getCols();
  if (isFlat(cluster, rest)) {
    rows = DimsAttr::get(builder.getContext(), ArrayRef<StringAttr>());
    columns = dimsOf(cluster.getResult(rest.results[0]));
  }
  auto fused =
      FusedOp::create(builder, cluster.getLoc(), types, inputs, rows, columns);
  fused->setDiscardableAttrs(cluster->getDiscardableAttrDictionary());
  Block *newBody = new Block;
  fused.getBody().push_back(newBody);
  IRMapping mapping;
  for (Value leaf : rest.leaves)
    mapping.map(leaf, newBody->addArgument(leaf.getType(), leaf.getLoc()));
  OpBuilder inside = OpBuilder::atBlockEnd(newBody);
  for (Operation &op : body.without_terminator())
    if (rest.members.contains(&op))
      inside.clone(op, mapping);
  SmallVector<Value> yields;
  for (auto [i, result] : llvm::enumerate(rest.results)) {
    yields.push_back(mapping.lookup(body.getTerminator()->getOperand(result)));
    cluster.getResult(result).replaceAllUsesWith(fused.getResult(i));
  }
  YieldOp::create(inside, cluster.getLoc(), yields);
}

} // namespace meshwork::fusion
