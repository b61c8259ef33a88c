// The factors of ops whose dims' names alone do not tell.
#include "dialects/transformer/Dims.h"

using namespace mlir;
using namespace meshwork::transformer;

/// Marks the factors that `isWhole` names.
static SmallVector<Factor> withWhole(Operation *op,
                                     function_ref<bool(StringRef)> isWhole) {
  SmallVector<Factor> factors = factorsFromNames(op);
  for (Factor &factor : factors)
    if (isWhole(factor.name))
      factor.kind = Factor::whole;
  return factors;
}

/// A body that asks for a position counts it from the whole tensor's start.
SmallVector<Factor> MapOp::getFactors() {
  llvm::SmallDenseSet<StringRef> counted;
  getBody().walk([&](IndexOp op) { counted.insert(op.getDim()); });
  return withWhole(*this,
                   [&](StringRef name) { return counted.contains(name); });
}

SmallVector<Factor> ReduceOp::getFactors() {
  SmallVector<Factor> factors = factorsFromNames(*this);
  for (Factor &factor : factors)
    factor.combine = getKind();
  return factors;
}

SmallVector<Factor> RollOp::getFactors() {
  StringRef last = dimsOf(getResult()).getNames().back();
  return withWhole(*this, [&](StringRef name) { return name == last; });
}

/// The sliced dim, under its name in the whole and in each part. Its parts have
/// other sizes, so it is no loop that the two share.
static SmallVector<Factor> sliceFactors(Operation *op, Value whole,
                                        ValueRange parts, StringRef dim) {
  llvm::SmallDenseSet<StringRef> changed = {dim};
  for (Value part : parts)
    for (StringAttr name : dimsOf(part).getNames())
      if (dimsOf(whole).find(name) < 0)
        changed.insert(name.getValue());
  return withWhole(op, [&](StringRef name) { return changed.contains(name); });
}
SmallVector<Factor> SliceOp::getFactors() {
  return sliceFactors(*this, getInput(), getResult(), getDim());
}
SmallVector<Factor> UnsliceOp::getFactors() {
  return sliceFactors(*this, getResult(), getParts(), getDim());
}

/// A rank's rows are told their positions; columns are pairs of halves.
SmallVector<Factor> RotaryTableOp::getFactors() {
  return withWhole(*this, [](StringRef name) { return name != dims::tokens; });
}

/// The rows of queries and those of keys are two factors; of the queries each
/// rank may have some.
static void splitQueries(SmallVector<Factor> &factors) {
  auto queries = llvm::find_if(
      factors, [](const Factor &factor) { return factor.name == "sequence"; });
  if (queries == factors.end())
    return;
  Factor keys = *queries;
  keys.name = "keys";
  keys.kind = Factor::whole;
  queries->kind = Factor::parallel;
  constexpr unsigned k = 1, v = 2; // operands; dk and dv are results
  for (auto [i, dim] : llvm::enumerate(keys.operandDims))
    (i == k || i == v ? queries->operandDims[i] : dim) = Factor::absent;
  bool isGradient = keys.resultDims.size() > 2;
  for (auto [i, dim] : llvm::enumerate(keys.resultDims))
    (isGradient && (i == k || i == v) ? queries->resultDims[i] : dim) =
        Factor::absent;
  factors.push_back(keys);
}

/// batch and heads split freely; a sequence and head_dim stay whole, unless
/// ranks share the queries. Query heads are groups that share a key head: two
/// factors, of which keys have the first.
static SmallVector<Factor> attentionFactors(Operation *op, Sharing sharing) {
  SmallVector<Factor> factors = withWhole(op, [](StringRef name) {
    return name != "batch" && name != "heads" && name != "kv_heads";
  });
  if (sharing == Sharing::gathered)
    splitQueries(factors);
  // Keys come to where the queries are; a rank has the same part of both.
  for (Factor &factor : factors)
    if (sharing == Sharing::ring && factor.name == "sequence")
      factor.kind = Factor::parallel;
  auto named = [&](StringRef name) {
    return llvm::find_if(
        factors, [&](const Factor &factor) { return factor.name == name; });
  };
  auto shared = named("kv_heads"), group = named("heads");
  if (shared == factors.end() || group == factors.end())
    return factors;
  shared->kind = Factor::parallel;
  group->size /= shared->size;
  auto join = [](MutableArrayRef<int64_t> to, ArrayRef<int64_t> from) {
    for (auto [position, other] : llvm::zip_equal(to, from))
      position = std::max(position, other);
  };
  join(shared->operandDims, group->operandDims);
  join(shared->resultDims, group->resultDims);
  if (group < shared)
    std::swap(*group, *shared);
  return factors;
}
SmallVector<Factor> AttentionOp::getFactors() {
  return attentionFactors(*this, getSharing());
}
SmallVector<Factor> AttentionGradOp::getFactors() {
  return attentionFactors(*this, getSharing());
}

/// Logits need all of `embed`; over `vocab`, the loss and the normalizers are
/// combined within (-transformer-expand-head).
SmallVector<Factor> HeadLossGradOp::getFactors() {
  StringRef vocab = dimsOf(getWeight()).getNames()[0],
            embed = dimsOf(getWeight()).getNames()[1];
  SmallVector<Factor> factors =
      withWhole(*this, [&](StringRef name) { return name == embed; });
  for (Factor &factor : factors)
    if (factor.name == vocab)
      factor.resultDims[0] = Factor::complete;
  return factors;
}
