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

/// Marks those that results have as told by attributes of the op.
static SmallVector<Factor> withCounted(SmallVector<Factor> factors) {
  for (Factor &factor : factors)
    factor.isCounted =
        llvm::any_of(factor.resultDims, [](int64_t dim) { return dim >= 0; });
  return factors;
}

/// The factor with that role, or null.
static Factor *factorOf(MutableArrayRef<Factor> factors, Factor::Role role) {
  auto *found = llvm::find_if(
      factors, [&](const Factor &factor) { return factor.role == role; });
  return found == factors.end() ? nullptr : found;
}

/// Says of the factor along that dim of `value` what it is for. One that has a
/// role keeps it.
static void setRole(MutableArrayRef<Factor> factors, Value value, unsigned dim,
                    Factor::Role role) {
  StringRef name = dimsOf(value).getNames()[dim];
  for (Factor &factor : factors)
    if (factor.name == name && factor.role == Factor::none)
      factor.role = role;
}

/// A body that asks for a position counts it from the whole tensor's start, and
/// one that draws counts samples from the step's.
SmallVector<Factor> MapOp::getFactors() {
  llvm::SmallDenseSet<StringRef> counted;
  bool draws = false;
  getBody().walk([&](Operation *op) {
    if (auto index = dyn_cast<IndexOp>(op))
      counted.insert(index.getDim());
    else
      draws |= isa<DrawOpInterface>(op);
  });
  SmallVector<Factor> factors =
      withWhole(*this, [&](StringRef name) { return counted.contains(name); });
  for (Factor &factor : factors)
    if (draws && factor.name == dims::samples)
      factor.role = Factor::samples;
  return factors;
}

SmallVector<Factor> ReduceOp::getFactors() {
  SmallVector<Factor> factors = factorsFromNames(*this);
  for (Factor &factor : factors)
    factor.combine = getKind();
  return factors;
}

SmallVector<Factor> RollOp::getFactors() {
  StringRef last = dimsOf(getResult()).getNames().back();
  return withCounted(
      withWhole(*this, [&](StringRef name) { return name == last; }));
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
  return withCounted(sliceFactors(*this, getResult(), getParts(), getDim()));
}

/// The dims that only one side has, or in another size.
static SmallVector<Factor> splitFactors(Operation *op, Value whole, Value parts,
                                        StringRef dim) {
  return withWhole(op, [&](StringRef name) {
    auto named = StringAttr::get(op->getContext(), name);
    return name == dim || dimsOf(whole).find(named) < 0 ||
           dimsOf(parts).find(named) < 0;
  });
}
SmallVector<Factor> SplitOp::getFactors() {
  return splitFactors(*this, getInput(), getResult(), getDim());
}
SmallVector<Factor> MergeOp::getFactors() {
  return splitFactors(*this, getResult(), getInput(), getDim());
}

/// A rank's rows are told their positions; columns are pairs of halves.
SmallVector<Factor> RotaryTableOp::getFactors() {
  return withCounted(
      withWhole(*this, [](StringRef name) { return name != dims::tokens; }));
}

/// The rows of queries and those of keys are two factors; of the queries each
/// rank may have some.
static void splitQueries(SmallVector<Factor> &factors) {
  Factor *queries = factorOf(factors, Factor::tokens);
  Factor keys = *queries;
  keys.name = "keys";
  keys.kind = Factor::whole;
  keys.role = Factor::none;
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

/// What the dims are is told by their places in q and k, [samples, tokens,
/// heads, elements of a head].
static void setRoles(MutableArrayRef<Factor> factors, Value q, Value k) {
  setRole(factors, q, 0, Factor::samples);
  setRole(factors, q, 1, Factor::tokens);
  setRole(factors, q, 2, Factor::heads);
  setRole(factors, k, 2, Factor::keyHeads);
}

/// Samples and heads split freely; tokens and elements of a head stay whole,
/// unless ranks share the queries. Query heads are groups that share a key
/// head: two factors, of which keys have the first.
static SmallVector<Factor> attentionFactors(AttentionOpInterface op) {
  SmallVector<Factor> factors = factorsFromNames(op);
  Sharing sharing = op.getTerms().getSharing();
  setRoles(factors, op.getQ(), op.getK());
  for (Factor &factor : factors)
    if (factor.role == Factor::none || factor.role == Factor::tokens)
      factor.kind = Factor::whole;
  if (sharing == Sharing::gathered)
    splitQueries(factors);
  // Keys come to where the queries are; a rank has the same part of both.
  if (sharing == Sharing::ring)
    factorOf(factors, Factor::tokens)->kind = Factor::parallel;
  Factor *shared = factorOf(factors, Factor::keyHeads),
         *group = factorOf(factors, Factor::heads);
  if (!shared)
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
  return attentionFactors(*this);
}
SmallVector<Factor> AttentionGradOp::getFactors() {
  return attentionFactors(*this);
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
  setRole(factors, getWeight(), 1, Factor::width);
  return factors;
}
