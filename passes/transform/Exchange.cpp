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

/// `wanted`, rounded up, within bounds; it may be any number.
int64_t clamped(double wanted, int64_t least, int64_t most) {
  return wanted < static_cast<double>(most)
             ? std::max(static_cast<int64_t>(std::ceil(wanted)), least)
             : most;
}

/// Sizes of one exchange. Of a rank's tokens each rank takes as many in a round
/// as an even choice sends it, times the bound, and likewise of their choices.
struct Sizes {
  int64_t ranks, slots, most, rounds, room;

  template <typename Op> Sizes(Op op, int64_t ranks) : ranks(ranks) {
    auto choices = tensorType(op.getChoices());
    int64_t k = choices.getShape().back(),
            tokens = choices.getNumElements() / k,
            own = tensorType(op.getGate()).getDimSize(0),
            ofToken = std::min(k, own);
    double even = op.getBound()->convertToDouble() *
                  static_cast<double>(tokens) / static_cast<double>(ranks);
    slots = clamped(even * meanRanks(ranks, own * ranks, k), 1, tokens);
    most = clamped(even * static_cast<double>(k), ofToken, slots * ofToken);
    rounds = llvm::divideCeil(tokens, std::min(slots, most / ofToken));
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
  Exchange(Op op, const ExchangedOperands &operands, BuiltRows &built)
      : op(op), of(operands), sizes(op, countRanks(op, of.axes)), built(built),
        builder(op), facts(builder, op) {
    int64_t most = sizes.ranks * sizes.most;
    std::optional<int64_t> ofCapacity =
        of.mixture.most; // for one rank's tokens
    of.mixture.most =
        std::min(most, ofCapacity ? sizes.ranks * *ofCapacity : most);
  }

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
        x.down, x.first, op.getTotalAttr(), builder.getI64IntegerAttr(*x.most),
        all.slots, all.places, all.ranks, last, of.axes, of.gradient,
        x.rowScales, /*apart=*/UnitAttr(), *first);
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
    auto made = built.find<AssignSlotsOp>(
        builder, op.getLoc(), slots, ranks, places,
        RankedTensorType::get({}, i32), choices, static_cast<uint64_t>(experts),
        static_cast<uint64_t>(sizes.most));
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
  ExchangedOperands of;
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
