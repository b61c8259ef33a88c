// Further rounds of an exchange as a counted repeat. Late, when a rank's step
// is in order: how often a repeat runs is no matter of the passes before, and
// what is in it is made anew in each pass.
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/transform/ExpertRound.h"
#include "passes/transform/OneWord.h"
#include "passes/transform/Passes.h"

using namespace mlir;
namespace meshwork::transform {
#define GEN_PASS_DEF_EXPANDROUNDSPASS
#include "passes/transform/Passes.h.inc"
namespace {
using namespace transformer;

class Rounds {
public:
  /// `word`, where there is one, is 0 where no round is behind the first.
  /// `turns` are those of a rank's own number of rounds, by that, in a block.
  Rounds(ExpertRoundsOp op, Value word, llvm::DenseMap<Value, Value> &turns)
      : op(op), word(word), turns(turns),
        of{MixtureOperands(op), op.getGradient(), op.getExchangeAxesAttr()},
        builder(op), facts(builder, op) {
    of.mixture.most = op.getRows();
  }

  LogicalResult run() {
    if (failed(accumulate()))
      return failure();
    SmallVector<Value> sums;
    for (unsigned number : carried)
      sums.push_back(op.sumOf(number));
    FailureOr<RepeatOp> repeat = word ? buildUnder(sums) : buildAll(sums);
    if (failed(repeat))
      return failure();
    for (auto [i, result] : llvm::enumerate(carried))
      op.getResult(result).replaceAllUsesWith(repeat->carriedResults()[i]);
    op->erase();
    return success();
  }

private:
  /// A sum that is only accumulated is so by each round, where it is kept.
  LogicalResult accumulate() {
    for (OpResult result : op.getResults()) {
      unsigned number = result.getResultNumber();
      // Of what is computed again nobody asks how large it was.
      if (isMagnitude(number) && result.use_empty())
        continue;
      bool isAccumulated =
          !result.use_empty() &&
          llvm::all_of(result.getUsers(), llvm::IsaPred<AccumulateOp>);
      if (isAccumulated)
        accumulate(result);
      else if (op.sumOf(number))
        carried.push_back(number);
      else if (!result.use_empty())
        return op.emitOpError("has a gradient of weights apart that is not "
                              "only accumulated");
    }
    return success();
  }

  /// That of the first round in front, where it is not apart.
  void accumulate(OpResult result) {
    Value sum = op.sumOf(result.getResultNumber());
    for (Operation *user : llvm::make_early_inc_range(result.getUsers())) {
      auto accumulation = cast<AccumulateOp>(user);
      accumulations.push_back(
          {result.getResultNumber(), accumulation.getKey()});
      if (!sum) {
        accumulation->erase();
        continue;
      }
      accumulation.getValueMutable().assign(sum);
      accumulation->moveBefore(op);
    }
  }

  bool isMagnitude(unsigned number) const {
    return number >= ExpertRoundsOp(op).countSums();
  }

  /// Of what is carried from turn to turn, with that of another turn.
  Value joined(unsigned number, Value before, Value now) {
    if (!isMagnitude(number))
      return buildSum(builder, op->getLoc(), before, now);
    return buildMap(builder, op->getLoc(), before.getType(), {before, now},
                    [](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
                      return arith::MaximumFOp::create(b, x[0], x[1]);
                    });
  }

  /// A repeat whose body is to be filled.
  RepeatOp begin(int64_t times, StringAttr dim, Value turns, ValueRange cut,
                 ValueRange sums) {
    auto repeat = RepeatOp::create(builder, op.getLoc(), TypeRange(sums),
                                   builder.getI64IntegerAttr(times), dim, turns,
                                   cut, sums, ValueRange());
    Block &body = repeat.getBody().emplaceBlock();
    for (Value whole : cut)
      body.addArgument(repeat.partOf(whole.getType()), op.getLoc());
    for (Value sum : sums)
      body.addArgument(sum.getType(), op.getLoc());
    return repeat;
  }

  /// All rounds behind the first in a turn that comes only where the word says
  /// so. What they count is then looked at.
  FailureOr<RepeatOp> buildUnder(ValueRange sums) {
    RepeatOp wide = begin(1, builder.getStringAttr("wide"), word, {}, sums);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&wide.getBody().front());
    FailureOr<RepeatOp> all =
        buildAll(llvm::to_vector_of<Value>(wide.carriedArguments()));
    if (failed(all))
      return failure();
    YieldOp::create(builder, op.getLoc(), all->carriedResults());
    wide.shareCaptured();
    return wide;
  }

  /// The backward pass has as many rounds as the forward pass.
  Value countTurns() {
    if (word)
      return ExpertRound(builder, op, of, built).largest(op.getLast());
    Value &known = turns[op.getLast()];
    if (!known)
      known = ExpertRound(builder, op, of, built).largest(op.getLast());
    return known;
  }

  FailureOr<RepeatOp> buildAll(ValueRange sums) {
    int64_t times = op.countRounds() - 1;
    Value count = countTurns();
    SmallVector<Value> cut = {rest(op.getSlots()), rest(op.getPlaces())};
    RepeatOp repeat =
        begin(times, dimsOf(op.getSlots()).getNames()[0], count, cut, sums);
    if (failed(fill(repeat)))
      return failure();
    repeat.shareCaptured();
    return repeat;
  }
  /// Of all rounds but the first.
  Value rest(Value all) {
    auto type = tensorType(all);
    SmallVector<int64_t> shape(type.getShape());
    int64_t first = shape[0] / op.countRounds();
    shape[0] -= first;
    return SliceOp::create(
        builder, op.getLoc(),
        RankedTensorType::get(shape, type.getElementType(), type.getEncoding()),
        all, dimsOf(type).getNames()[0], static_cast<uint64_t>(first));
  }

  LogicalResult fill(RepeatOp repeat) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&repeat.getBody().front());
    auto cut = repeat.cutArguments();
    auto made = ExpertRound(builder, op, of, built)
                    .run({cut[0], cut[1], op.getRanks()});
    if (failed(made))
      return failure();
    for (auto [number, key] : accumulations)
      AccumulateOp::create(builder, op.getLoc(), key, (*made)[number]);
    SmallVector<Value> sums;
    for (auto [number, sum] :
         llvm::zip_equal(carried, repeat.carriedArguments()))
      sums.push_back(joined(number, sum, (*made)[number]));
    YieldOp::create(builder, op.getLoc(), sums);
    return success();
  }

  ExpertRoundsOp op;
  Value word;
  llvm::DenseMap<Value, Value> &turns;
  ExchangedOperands of;
  OpBuilder builder;
  BuiltFor facts;
  BuiltRows built;               // in a turn
  SmallVector<unsigned> carried; // results
  SmallVector<std::pair<unsigned, StateKey>> accumulations;
};

struct ExpandRoundsPass : impl::ExpandRoundsPassBase<ExpandRoundsPass> {
  using ExpandRoundsPassBase::ExpandRoundsPassBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(expand(function)))
        return signalPassFailure();
  }

  LogicalResult expand(func::FuncOp function) {
    Words words = oneWord ? askOnce(function) : Words();
    SmallVector<ExpertRoundsOp> ops;
    function.walk([&](ExpertRoundsOp op) { ops.push_back(op); });
    llvm::DenseMap<Value, Value> turns;
    return success(llvm::all_of(ops, [&](ExpertRoundsOp op) {
      return succeeded(Rounds(op, words.lookup(op), turns).run());
    }));
  }
};
} // namespace
} // namespace meshwork::transform
