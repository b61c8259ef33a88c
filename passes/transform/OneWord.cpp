#include "passes/transform/OneWord.h"

#include "dialects/transformer/Facts.h"
#include "passes/transform/ExpertRound.h"
#include "passes/transform/WideForm.h"

using namespace mlir;
namespace meshwork::transform {
using namespace transformer;

/// Those of a microbatch in their order: up to the head, and in a pipeline
/// those of the rank's stages.
static std::vector<WideForm> forwardsOf(Block &block) {
  std::vector<WideForm> forwards;
  bool isPipeline = !block.getOps<StageListOp>().empty();
  Operation *begin = isPipeline ? nullptr : &block.front();
  for (Operation &op : block) {
    auto list = dyn_cast<StageListOp>(op);
    if (!list && !isHead(&op))
      continue;
    if (begin)
      forwards.emplace_back(begin, &op);
    bool isForward = list && list.getKind() == StageList::forward;
    begin = isForward ? op.getNextNode() : nullptr;
  }
  return forwards;
}

/// All axes along which ranks meet in the wide form.
static ArrayAttr axesOf(RepeatOp wide) {
  llvm::DenseSet<Attribute> named;
  wide.walk([&](mesh::CollectiveOpInterface one) {
    named.insert(one.getAxes().begin(), one.getAxes().end());
  });
  wide.walk([&](ExpertRoundsOp one) {
    named.insert(one.getExchangeAxes().begin(), one.getExchangeAxes().end());
  });
  auto ordered = llvm::filter_to_vector(
      mesh::meshOf(wide).getNames(),
      [&](Attribute name) { return named.contains(name); });
  return ArrayAttr::get(wide->getContext(),
                        llvm::to_vector_of<Attribute>(ordered));
}

/// In front of the wide form: 1 where any exchange of any rank that meets there
/// has a further round.
static Value buildWord(RepeatOp wide, ArrayRef<ExpertRoundsOp> rounds) {
  ExpertRoundsOp last = rounds.back();
  OpBuilder builder(wide);
  BuiltFor facts(builder, last);
  auto numbers = llvm::map_to_vector(
      rounds, [](ExpertRoundsOp op) -> Value { return op.getLast(); });
  Value any = buildMap(
      builder, last.getLoc(), numbers.front().getType(), numbers,
      [](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
        Value most = x.front();
        for (Value one : x.drop_front())
          most = arith::MaxSIOp::create(b, most, one);
        return arith::MinSIOp::create(
            b, most, arith::ConstantOp::create(b, b.getI32IntegerAttr(1)));
      });
  ExchangedOperands of{MixtureOperands(last), Value(), axesOf(wide)};
  BuiltRows built;
  return ExpertRound(builder, last, of, built).largest(any);
}

/// Rounds of the backward pass that are as many as those of the forward pass.
static SmallVector<Operation *> backwardOf(ArrayRef<ExpertRoundsOp> rounds) {
  SmallVector<Operation *> backward;
  for (ExpertRoundsOp one : rounds)
    for (Operation *user : one.getLast().getUsers())
      if (auto op = dyn_cast<ExpertRoundsOp>(user);
          op && !llvm::is_contained(rounds, op))
        backward.push_back(op);
  return backward;
}

static void runNarrowFirst(WideForm &forward, Words &words) {
  SmallVector<Operation *> backward = backwardOf(forward.getRounds());
  RepeatOp wide = forward.build();
  Value word = buildWord(wide, forward.getRounds());
  wide.getCountMutable().assign(word);
  forward.dropRounds();
  for (Operation *op : backward)
    words[op] = word;
}

Words askOnce(func::FuncOp microbatch) {
  Words words;
  for (WideForm &forward : forwardsOf(microbatch.getBody().front()))
    if (forward.find())
      runNarrowFirst(forward, words);
  return words;
}

} // namespace meshwork::transform
