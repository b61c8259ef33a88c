#include "passes/transform/Exchange.h"

#include "passes/transform/ExpertRound.h"

using namespace mlir;
namespace meshwork::transform {
using namespace transformer;

namespace {
/// How many ranks a token goes to when experts are chosen evenly: N (1 - C(E -
/// E/N, k) / C(E, k)) of N ranks, E experts and k choices.
double meanRanks(int64_t ranks, int64_t experts, int64_t choices) {
  double none = 1;
  for (int64_t i = 0; i < choices; ++i) {
    int64_t others = std::max<int64_t>(experts - experts / ranks - i, 0);
    none *= static_cast<double>(others) / static_cast<double>(experts - i);
  }
  return static_cast<double>(ranks) * (1 - none);
}

/// Sizes of one exchange.
struct Sizes {
  int64_t ranks, slots, rounds, room;

  template <typename Op> Sizes(Op op, int64_t ranks) : ranks(ranks) {
    auto choices = tensorType(op.getChoices());
    int64_t k = choices.getShape().back(),
            tokens = choices.getNumElements() / k,
            experts = tensorType(op.getGate()).getDimSize(0) * ranks;
    double wanted = op.getBound()->convertToDouble() *
                    static_cast<double>(tokens) * meanRanks(ranks, experts, k) /
                    static_cast<double>(ranks);
    slots = wanted < static_cast<double>(tokens)
                ? std::max<int64_t>(static_cast<int64_t>(std::ceil(wanted)), 1)
                : tokens;
    rounds = llvm::divideCeil(tokens, slots);
    room = std::min(k, ranks);
  }
};

/// The slots of all rounds, and the number of the last.
struct Assigned {
  SlotsOfRound all;
  Value last;
};

template <typename Op> class Exchange {
public:
  Exchange(Op op, const ExchangedOperands &of, BuiltRows &built)
      : op(op), of(of), sizes(op, countRanks(op, of.axes)), built(built),
        builder(op), facts(builder, op) {}

  FailureOr<SmallVector<Value>> run() {
    auto [all, last] = assign();
    ExpertRound round(builder, op, of, built);
    auto first = round.run({part(all.slots), part(all.places), all.ranks});
    if (failed(first) || sizes.rounds == 1)
      return first;
    const MixtureOperands &x = of.mixture;
    auto rest = ExpertRoundsOp::create(
        builder, op.getLoc(), TypeRange(ValueRange(*first)),
        op.getFunctionAttr(), x.input, x.choices, x.weights, x.gate, x.up,
        x.down, x.first, op.getTotalAttr(), all.slots, all.places, all.ranks,
        last, of.axes, of.gradient, *first);
    return SmallVector<Value>(rest.getResults());
  }

private:
  /// No name of a dim of tokens.
  StringAttr slotsName() {
    std::string name = "slots";
    auto isTaken = [&](Value value) {
      return dimsOf(value).find(builder.getStringAttr(name)) >= 0;
    };
    while (isTaken(of.mixture.choices) || isTaken(of.mixture.input) ||
           isTaken(of.mixture.gate))
      name += "_";
    return builder.getStringAttr(name);
  }

  Assigned assign() {
    Value choices = of.mixture.choices;
    DimsAttr dims = dimsOf(choices);
    Type i32 = builder.getI32Type();
    SmallVector<int64_t> shape(tensorType(choices).getShape());
    shape.back() = sizes.room;
    Type ranks = namedType(shape, dims, i32);
    shape.front() *= sizes.rounds;
    Type places = namedType(shape, dims, i32);
    StringAttr names[] = {dims.getNames()[0], slotsName()};
    Type slots = namedType({sizes.rounds * sizes.ranks, sizes.slots},
                           DimsAttr::get(builder.getContext(), names), i32);
    int64_t experts = tensorType(of.mixture.gate).getDimSize(0);
    auto made =
        built.find<AssignSlotsOp>(builder, op.getLoc(), slots, ranks, places,
                                  RankedTensorType::get({}, i32), choices,
                                  static_cast<uint64_t>(experts));
    return {{made.getSlots(), made.getPlaces(), made.getRanks()},
            made.getLast()};
  }

  /// Of the first round.
  Value part(Value all) {
    if (sizes.rounds == 1)
      return all;
    auto type = tensorType(all);
    SmallVector<int64_t> shape(type.getShape());
    shape[0] /= sizes.rounds;
    return built.find<SliceOp>(
        builder, op.getLoc(),
        RankedTensorType::get(shape, type.getElementType(), type.getEncoding()),
        all, dimsOf(type).getNames()[0], uint64_t{0});
  }

  Op op;
  const ExchangedOperands &of;
  Sizes sizes;
  BuiltRows &built;
  OpBuilder builder;
  BuiltFor facts;
};
} // namespace

FailureOr<SmallVector<Value>> exchanged(ExpertsOp op, BuiltRows &built) {
  ExchangedOperands of{MixtureOperands(op), Value(), *op.getExchangeAxes()};
  return Exchange(op, of, built).run();
}

FailureOr<SmallVector<Value>> exchanged(ExpertsGradOp op, BuiltRows &built) {
  ExchangedOperands of{MixtureOperands(op), op.getGradient(),
                       *op.getExchangeAxes()};
  return Exchange(op, of, built).run();
}

} // namespace meshwork::transform
