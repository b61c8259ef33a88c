#include "passes/transform/ExpertRound.h"

#include "dialects/transformer/Facts.h"

using namespace mlir;
namespace meshwork::transform {
using namespace transformer;

int64_t countRanks(Operation *op, ArrayAttr axes) {
  mesh::MeshAttr mesh = mesh::meshOf(op);
  int64_t ranks = 1;
  for (StringAttr axis : axes.getAsRange<StringAttr>())
    ranks *= mesh.sizeOf(axis);
  return ranks;
}

mesh::CauseAttr ExpertRound::cause(const Twine &what) {
  auto text = [&](const Twine &words) { return builder.getStringAttr(words); };
  constexpr int64_t none = mesh::CauseAttr::noLayer;
  return mesh::CauseAttr::get(
      builder.getContext(), text(what), layerOf(op).value_or(none), text(""),
      none, text("by the ranks that have the experts (experts.exchange)"),
      {text("experts.exchange"), text("shard.experts")});
}

Value ExpertRound::largest(Value number) {
  return mesh::AllReduceOp::create(builder, op->getLoc(), number.getType(),
                                   number, mesh::Reduction::max, of.axes,
                                   cause("rounds of experts"));
}

Value ExpertRound::moved(Value value, int64_t gather, int64_t split,
                         const Twine &what) {
  auto type = tensorType(value);
  SmallVector<int64_t> shape(type.getShape());
  shape[gather] *= ranks;
  shape[split] /= ranks;
  Type result =
      RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
  return built.find<mesh::AllToAllOp>(
      builder, op->getLoc(), result, value, static_cast<uint64_t>(gather),
      static_cast<uint64_t>(split), of.axes, cause(what));
}

/// What this rank's slots bring it of all ranks' tokens.
Value ExpertRound::sent(Value ofTokens, const SlotsOfRound &round,
                        const Twine &what) {
  SmallVector<int64_t> shape(tensorType(round.slots).getShape());
  SmallVector<StringAttr> names(dimsOf(round.slots).getNames());
  shape.push_back(tensorType(ofTokens).getShape().back());
  names.push_back(dimsOf(ofTokens).getNames().back());
  Type type = namedType(shape, DimsAttr::get(builder.getContext(), names),
                        tensorType(ofTokens).getElementType());
  Value taken = built.find<TakeRowsOp>(builder, op->getLoc(), type, ofTokens,
                                       round.slots);
  return moved(taken, /*gather=*/1, /*split=*/0, what);
}

/// For each token the sum of what its ranks have made of it.
Value ExpertRound::returned(Value ofSlots, const SlotsOfRound &round,
                            Value like, const Twine &what) {
  Value rows = moved(ofSlots, /*gather=*/0, /*split=*/1, what);
  RankedTensorType type =
      withElement(like.getType(), tensorType(ofSlots).getElementType());
  return built.find<CombineRowsOp>(builder, op->getLoc(), type, rows,
                                   round.places, round.ranks);
}

FailureOr<SmallVector<Value>> ExpertRound::run(const SlotsOfRound &round) {
  MixtureOperands here = of.mixture;
  here.choices = sent(here.choices, round, "choices of tokens");
  here.weights = sent(here.weights, round, "weights of choices");
  here.input = sent(here.input, round, "tokens");
  if (of.gradient)
    return gradients(here, round);
  SmallVector<Value> made = ExpertRows(builder, op, here, built).forward();
  made[0] = returned(made[0], round, of.mixture.input, "sums of experts");
  return made;
}

FailureOr<SmallVector<Value>>
ExpertRound::gradients(const MixtureOperands &here, const SlotsOfRound &round) {
  Value gradient = sent(of.gradient, round, "gradients of tokens");
  auto made = ExpertRows(builder, op, here, built).backward(gradient);
  if (failed(made))
    return failure();
  (*made)[0] =
      returned((*made)[0], round, of.mixture.input, "tokens (gradient)");
  (*made)[1] =
      returned((*made)[1], round, of.mixture.weights, "weights (gradient)");
  return made;
}

} // namespace meshwork::transform
