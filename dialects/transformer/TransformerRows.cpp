// Sorted rows of a rank's experts: verification, factors and flops.
#include "dialects/transformer/Transformer.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace {
/// [of the first `numFirst` dims of `first`, then the last `numLast` of
/// `last`], with the elements of `last`.
RankedTensorType joined(RankedTensorType first, int64_t numFirst,
                        RankedTensorType last, int64_t numLast) {
  SmallVector<int64_t> shape(first.getShape().take_front(numFirst));
  SmallVector<StringAttr> names(dimsOf(first).getNames().take_front(numFirst));
  llvm::append_range(shape, last.getShape().take_back(numLast));
  llvm::append_range(names, dimsOf(last).getNames().take_back(numLast));
  return namedType(shape, DimsAttr::get(first.getContext(), names),
                   last.getElementType());
}

/// One entry more than the experts of `ofExperts`.
LogicalResult verifyBegins(Operation *op, Value begins, int64_t experts) {
  auto type = tensorType(begins);
  if (type.getRank() == 1 && type.getDimSize(0) == experts + 1)
    return success();
  return op->emitOpError() << "(C2) begins is " << type << ", expected "
                           << experts + 1 << " of " << experts << " experts";
}

/// Nothing of it is ever split.
SmallVector<Factor> wholeFactors(Operation *op) {
  SmallVector<Factor> factors = factorsFromNames(op);
  for (Factor &factor : factors)
    factor.kind = Factor::whole;
  return factors;
}

/// `about`: how many rows there are; absent: all.
uint64_t flopsOfRows(Value rows, RankedTensorType matrices,
                     std::optional<uint64_t> about) {
  auto all = static_cast<uint64_t>(tensorType(rows).getDimSize(0));
  return 2 * about.value_or(all) *
         static_cast<uint64_t>(matrices.getDimSize(1) * matrices.getDimSize(2));
}
} // namespace

//===-- sort_rows -----------------------------------------------------------//

LogicalResult SortRowsOp::verify() {
  auto choices = tensorType(getChoices()), order = tensorType(getOrder()),
       begins = tensorType(getBegins());
  if (choices.getRank() < 1 || order.getRank() != 1 || begins.getRank() != 1 ||
      begins.getDimSize(0) < 2)
    return emitOpError() << "(C1) expected choices [token dims..., choices], "
                            "[rows] and [experts + 1], found "
                         << choices << ", " << order << ", " << begins;
  int64_t k = choices.getShape().back(), experts = begins.getDimSize(0) - 1,
          all = choices.getNumElements() / k * std::min(k, experts),
          most = static_cast<int64_t>(getMostChoices().value_or(all)),
          needed = std::min(all, most);
  if (getMostChoices() && most < 1)
    return emitOpError() << "(C2) has rows for at most " << most
                         << " choices, expected 1 or more";
  if (order.getDimSize(0) < needed)
    return emitOpError() << "(C2) has " << order.getDimSize(0)
                         << " rows, expected " << needed << " or more";
  if (getFirstExpert() && tensorType(getFirstExpert()).getRank() != 0)
    return emitOpError() << "(C3) first_expert is "
                         << getFirstExpert().getType()
                         << ", expected tensor<i32>";
  return success();
}
SmallVector<Factor> SortRowsOp::getFactors() { return wholeFactors(*this); }

//===-- assign_slots --------------------------------------------------------//

/// Rounds for all tokens, and all ranks that one may go to.
static LogicalResult verifyRoom(AssignSlotsOp op, int64_t rounds,
                                int64_t ranks) {
  int64_t k = tensorType(op.getChoices()).getShape().back(),
          tokens = tensorType(op.getChoices()).getNumElements() / k,
          slots = tensorType(op.getSlots()).getDimSize(1),
          room = tensorType(op.getRanks()).getShape().back(),
          ofToken = std::min(k, static_cast<int64_t>(op.getExperts())),
          most = static_cast<int64_t>(op.getMostChoices());
  if (rounds * std::min(slots, most / ofToken) >= tokens &&
      room >= std::min(k, ranks))
    return success();
  return op.emitOpError() << "(C2) has " << rounds << " rounds of " << slots
                          << " slots and " << most << " choices for " << tokens
                          << " tokens with " << ofToken
                          << " on a rank, and room for " << room << " of "
                          << std::min(k, ranks) << " ranks";
}

LogicalResult AssignSlotsOp::verify() {
  auto choices = tensorType(getChoices()), slots = tensorType(getSlots()),
       ranks = tensorType(getRanks()), places = tensorType(getPlaces());
  int64_t rank = choices.getRank();
  bool fits = rank > 1 && ranks.getRank() == rank && places.getRank() == rank &&
              slots.getRank() == 2 && dimsOf(ranks) == dimsOf(choices) &&
              dimsOf(places) == dimsOf(choices) &&
              dimsOf(slots).getNames()[0] == dimsOf(choices).getNames()[0] &&
              tensorType(getLast()).getRank() == 0 && getExperts() > 0 &&
              ranks.getShape().drop_back() == choices.getShape().drop_back() &&
              places.getShape().drop_front() == ranks.getShape().drop_front();
  int64_t rounds =
      fits ? places.getDimSize(0) / std::max<int64_t>(ranks.getDimSize(0), 1)
           : 0;
  if (rounds < 1 || places.getDimSize(0) != rounds * ranks.getDimSize(0) ||
      slots.getDimSize(0) % rounds != 0)
    return emitOpError() << "(C1) expected choices [token dims..., choices], "
                            "slots [ranks of all rounds, slots], ranks with "
                            "the dims of choices, places with these for each "
                            "round, and tensor<i32>; found "
                         << choices << ", " << slots << ", " << ranks << ", "
                         << places << ", " << getLast().getType();
  return verifyRoom(*this, rounds, slots.getDimSize(0) / rounds);
}
SmallVector<Factor> AssignSlotsOp::getFactors() { return wholeFactors(*this); }

int64_t ExpertRoundsOp::countRounds() {
  int64_t tokens = tensorType(getRanks()).getDimSize(0);
  return tokens == 0 ? 0 : tensorType(getPlaces()).getDimSize(0) / tokens;
}
int64_t ExpertRoundsOp::countChoices() {
  return tensorType(getChoices()).getNumElements();
}

Value ExpertRoundsOp::sumOf(size_t result) {
  if (!getApart() || result < firstOfWeights)
    return getSums()[result];
  size_t behind = firstOfWeights + countOfWeights;
  return result < behind ? Value() : getSums()[result - countOfWeights];
}

LogicalResult ExpertRoundsOp::verify() {
  size_t apart = getApart() && getGradient() ? countOfWeights : 0,
         results = countSums() + countMagnitudes();
  auto isOfItsType = [&](OpResult result) {
    Value sum = sumOf(result.getResultNumber());
    return !sum || sum.getType() == result.getType();
  };
  if (getApart() && !getGradient())
    return emitOpError("(C1) has no gradient of weights that could be apart");
  if (getSums().size() != results - apart || getNumResults() != results ||
      !llvm::all_of(getResults(), isOfItsType))
    return emitOpError() << "(C1) has " << getSums().size() << " sums and "
                         << getNumResults() << " results, expected "
                         << countSums() - apart << " and " << countMagnitudes()
                         << " magnitudes, and results of their types";
  auto slots = tensorType(getSlots()), ranks = tensorType(getRanks()),
       places = tensorType(getPlaces());
  bool fits = slots.getRank() == 2 && ranks.getRank() > 1 &&
              places.getRank() == ranks.getRank() &&
              tensorType(getLast()).getRank() == 0;
  int64_t rounds = fits ? countRounds() : 0;
  if (rounds > 1 && places.getDimSize(0) == rounds * ranks.getDimSize(0) &&
      slots.getDimSize(0) % rounds == 0)
    return success();
  return emitOpError() << "(C2) has slots " << slots << ", places " << places
                       << " and ranks " << ranks << ", counted by "
                       << getLast().getType()
                       << "; expected parts for the same rounds, more than "
                          "one, and tensor<i32>";
}
SmallVector<Factor> ExpertRoundsOp::getFactors() { return wholeFactors(*this); }

//===-- take_rows, combine_rows ---------------------------------------------//

LogicalResult TakeRowsOp::verify() {
  auto table = tensorType(getTable()), rows = tensorType(getRows()),
       result = tensorType(getResult());
  int64_t width = result.getRank() - rows.getRank();
  if (width >= 0 && width < table.getRank() &&
      result == joined(rows, rows.getRank(), table, width))
    return success();
  return emitOpError() << "(C1) expected [dims of " << rows << ", last dims of "
                       << table << "], found " << result;
}
SmallVector<Factor> TakeRowsOp::getFactors() { return wholeFactors(*this); }
bool TakeRowsOp::staysF32(unsigned) {
  auto table = getTable().getDefiningOp<TensorOpInterface>();
  return table && table.staysF32(cast<OpResult>(getTable()).getResultNumber());
}

LogicalResult CombineRowsOp::verify() {
  auto source = tensorType(getSource()), places = tensorType(getPlaces()),
       result = tensorType(getResult());
  if (source.getRank() > 1 && places.getRank() > 0 &&
      result == joined(places, places.getRank() - 1, source, 1))
    return success();
  return emitOpError()
         << "(C1) expected [row dims..., embed], places [token dims..., "
            "choices] and [token dims..., embed], found "
         << source << ", " << places << ", " << result;
}
SmallVector<Factor> CombineRowsOp::getFactors() { return wholeFactors(*this); }

//===-- grouped products ----------------------------------------------------//

LogicalResult GroupedProductOp::verify() {
  auto lhs = tensorType(getLhs()), rhs = tensorType(getRhs()),
       result = tensorType(getResult());
  bool fits = lhs.getRank() == 2 && rhs.getRank() == 3 && result.getRank() == 2;
  for (auto [type, other] : {std::pair(lhs, result), {result, lhs}}) {
    if (!fits)
      break;
    StringAttr name = dimsOf(type).getNames()[1];
    int64_t at = dimsOf(rhs).find(name);
    fits = at > 0 && rhs.getDimSize(at) == type.getDimSize(1) &&
           dimsOf(other).find(name) < 0 &&
           lhs.getDimSize(0) == result.getDimSize(0) &&
           dimsOf(lhs).getNames()[0] == dimsOf(result).getNames()[0];
  }
  if (!fits)
    return emitOpError() << "(C1) expected [rows, a], [experts, a and b] and "
                            "[rows, b], found "
                         << lhs << ", " << rhs << ", " << result;
  return verifyBegins(*this, getBegins(), rhs.getDimSize(0));
}
SmallVector<Factor> GroupedProductOp::getFactors() {
  return wholeFactors(*this);
}
uint64_t GroupedProductOp::getFlops() {
  return flopsOfRows(getLhs(), tensorType(getRhs()), getAbout());
}

LogicalResult GroupedGradientOp::verify() {
  auto lhs = tensorType(getLhs()), rhs = tensorType(getRhs()),
       result = tensorType(getResult());
  bool fits = lhs.getRank() == 2 && rhs.getRank() == 2 &&
              result.getRank() == 3 && lhs.getDimSize(0) == rhs.getDimSize(0) &&
              dimsOf(lhs).getNames()[0] == dimsOf(rhs).getNames()[0];
  const RankedTensorType sides[] = {lhs, rhs};
  for (auto [i, type] : llvm::enumerate(sides))
    fits = fits && type.getDimSize(1) == result.getDimSize(i + 1) &&
           dimsOf(type).getNames()[1] == dimsOf(result).getNames()[i + 1];
  if (!fits)
    return emitOpError() << "(C1) expected [rows, a], [rows, b] and [experts, "
                            "a, b], found "
                         << lhs << ", " << rhs << ", " << result;
  return verifyBegins(*this, getBegins(), result.getDimSize(0));
}
SmallVector<Factor> GroupedGradientOp::getFactors() {
  return wholeFactors(*this);
}
uint64_t GroupedGradientOp::getFlops() {
  return flopsOfRows(getLhs(), tensorType(getResult()), getAbout());
}
