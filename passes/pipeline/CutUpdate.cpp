// One rank's part of the optimizer: its parameters, and what all stages add up.
#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Facts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/pipeline/Cut.h"
#include "passes/pipeline/Sums.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::pipeline {
namespace {

/// The state that `value` is made of by ops on one tensor each.
StateOp sourceOf(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && !isa<StateOp>(op) && op->getNumOperands() == 1)
    op = op->getOperand(0).getDefiningOp();
  return dyn_cast_or_null<StateOp>(op);
}

/// Of a parameter; none of what is no parameter.
ArrayRef<int64_t> ranksOf(const Coordinates &coordinates, StringRef parameter) {
  auto found = coordinates.find(parameter);
  return found == coordinates.end() ? ArrayRef<int64_t>() : found->second;
}

class Update {
public:
  Update(func::FuncOp whole, ArrayRef<Operation *> ops, ModuleOp module,
         int64_t rank, const Coordinates &coordinates,
         const Placement &placement)
      : function(whole.cloneWithoutRegions()), rank(rank),
        coordinates(coordinates), placement(placement),
        builder(function.getContext()) {
    module.push_back(function);
    copy(whole, ops);
  }

  LogicalResult run() {
    addShared();
    prune();
    flatten();
    addUpNumbers();
    return addUpNorm();
  }

private:
  Block &body() { return function.getBody().front(); }

  /// Behind all states that collectives read, as partition leaves them: what
  /// groups collectives moves them there.
  Value allReduce(Value value, StringRef what, StringRef why,
                  mesh::Reduction reduction = mesh::Reduction::sum) {
    Operation *after = value.getDefiningOp();
    for (auto state : function.getOps<StateOp>())
      if (startsAtZero(state.getKind()) && after->isBeforeInBlock(state))
        after = state;
    builder.setInsertionPointAfter(after);
    auto text = [&](StringRef t) { return builder.getStringAttr(t); };
    auto cause = mesh::CauseAttr::get(
        builder.getContext(), text(what), -1, text(""), -1,
        text((why + ", which " + placement.axis.getValue() +
              " splits (shard.layers)")
                 .str()),
        {text("shard.layers")});
    auto sum = mesh::AllReduceOp::create(
        builder, value.getLoc(), value.getType(), value, reduction,
        builder.getArrayAttr({placement.axis}), cause);
    value.replaceAllUsesExcept(sum, sum);
    return sum;
  }

  /// Sums keep the terms that are not copied until prune().
  void copy(func::FuncOp whole, ArrayRef<Operation *> ops) {
    Block &body = function.getBody().emplaceBlock();
    IRMapping copies;
    for (BlockArgument argument : whole.getArguments())
      copies.map(argument,
                 body.addArgument(argument.getType(), argument.getLoc()));
    builder.setInsertionPointToEnd(&body);
    for (Operation *op : ops)
      builder.clone(*op, copies);
  }

  bool isHere(StringRef parameter) const {
    return llvm::is_contained(ranksOf(coordinates, parameter), rank);
  }
  bool isShared(StringRef parameter) const {
    return ranksOf(coordinates, parameter).size() > 1;
  }

  /// Behind its sums over the data, which collectives make, or several ops that
  /// say whose gradient it is.
  Value reducedOf(StateOp state) {
    if (state.getKind() == StateKind::gradient)
      for (auto merge : function.getOps<MergeOp>())
        if (merge.getGradient() == state.getName())
          return merge;
    Value value = state;
    while (value.hasOneUse() &&
           isa<mesh::CollectiveOpInterface>(*value.user_begin()))
      value = value.user_begin()->getResult(0);
    return value;
  }

  /// Gradients of parameters that several ranks have, once each has summed its
  /// own over the data, and magnitudes likewise. A group is all ranks along the
  /// axis, so one between them that has no such parameter adds zeros.
  void addShared() {
    for (auto state : llvm::to_vector(function.getOps<StateOp>())) {
      if (!startsAtZero(state.getKind()) || !isOfParameter(state.getKind()) ||
          !isShared(state.getName()))
        continue;
      Value value = reducedOf(state);
      bool isMaximum = state.getKind() == StateKind::magnitude;
      Value sum = allReduce(
          value, (state.getName() + " (" + state.getKey().role() + ")").str(),
          "is used by stages",
          isMaximum ? mesh::Reduction::max : mesh::Reduction::sum);
      if (!isHere(state.getName()))
        passOn(state, sum);
    }
  }

  /// Keeps a sum that nothing here reads.
  void passOn(StateOp state, Value sum) {
    absent.insert(sum);
    passed.insert(state);
    builder.setInsertionPointAfterValue(sum);
    auto assign =
        AssignOp::create(builder, state.getLoc(), state.getKey(), sum);
    assign->setAttr(mesh::MeshDialect::storedName,
                    state->getAttr(mesh::MeshDialect::storedName));
    passed.insert(assign);
  }

  /// What other ranks have: states of their parameters, and in the norm those
  /// that a rank before this one has too.
  void prune() {
    for (Operation &op : body().without_terminator()) {
      if (passed.contains(&op))
        continue;
      if (auto state = dyn_cast<StateOp>(op);
          state && isOfParameter(state.getKind()) && !isHere(state.getName()))
        gone.insert(&op);
      else if (isSum(&op))
        dropTerms(cast<MapOp>(op));
      else if (llvm::any_of(op.getOperands(), isGone()))
        gone.insert(&op);
    }
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body())))
      if (gone.contains(&op))
        op.erase();
  }

  std::function<bool(Value)> isGone() const {
    return [&](Value value) {
      Operation *op = value.getDefiningOp();
      bool isCopied = !op || op->getParentOp() == function;
      return absent.contains(value) || gone.contains(op) || !isCopied;
    };
  }

  bool isCountedElsewhere(Value term) const {
    StateOp state = sourceOf(term);
    return state && state.getKind() == StateKind::gradient &&
           ranksOf(coordinates, state.getName()).front() != rank;
  }

  void dropTerms(MapOp sum) {
    auto goes = [&](Value term) {
      return isGone()(term) || isCountedElsewhere(term);
    };
    if (llvm::all_of(sum->getOperands(), goes)) {
      gone.insert(sum);
      return;
    }
    Block &terms = sum.getBody().front();
    for (unsigned i = sum->getNumOperands(); i-- > 0;) {
      if (!goes(sum->getOperand(i)))
        continue;
      shortened.insert(sum);
      builder.setInsertionPointToStart(&terms);
      terms.getArgument(i).replaceAllUsesWith(arith::ConstantOp::create(
          builder, sum.getLoc(), builder.getF32FloatAttr(0)));
      terms.eraseArgument(i);
      sum->eraseOperand(i);
    }
  }

  /// Makes sums that have lost terms anew: which of a model's terms stood
  /// together would else tell ranks apart that are equal (FoldRanks.cpp).
  void flatten() {
    llvm::DenseSet<Operation *> known;
    auto maps = llvm::to_vector(body().getOps<MapOp>());
    for (MapOp map : llvm::reverse(maps)) {
      if (known.contains(map) || !addsUp(map))
        continue;
      Sum sum(map);
      known.insert(sum.maps.begin(), sum.maps.end());
      if (llvm::none_of(sum.maps,
                        [&](MapOp one) { return shortened.contains(one); }))
        continue;
      sum.replace(sum.terms);
    }
  }

  LogicalResult addUpNorm() {
    for (auto assign : function.getOps<AssignOp>())
      if (assign.getKind() == StateKind::grad_norm) {
        auto root = assign.getValue().getDefiningOp<MapOp>();
        if (!root || root->getNumOperands() != 1)
          return assign.emitOpError("expected the root of a sum");
        allReduce(root->getOperand(0), "gradient norm",
                  "sums over parameters of stages");
        return success();
      }
    return success();
  }

  /// The loss, and what a step tells beside it: some stage has made it, and the
  /// others add zero. So does what a sum over ranks in the update makes of
  /// gradients.
  void addUpNumbers() {
    for (auto assign : function.getOps<AssignOp>())
      if (assign.getKind() == StateKind::metric)
        addUpTerms(assign.getValue().getDefiningOp());

    for (auto state : llvm::to_vector(function.getOps<StateOp>()))
      if (state.getKind() == StateKind::loss)
        addUp(state, "loss", "is made by the last stage");
      else if (state.getKind() == StateKind::metric)
        addUp(state, state.getName(), "is made by the stages");
  }

  void addUpTerms(Operation *metric) {
    for (Value term : metric->getOperands())
      if (auto sum = term.getDefiningOp<mesh::AllReduceOp>();
          sum && isComputed(sum->getOperand(0)))
        addAxis(sum);
  }

  void addAxis(mesh::AllReduceOp sum) {
    SmallVector<Attribute> axes = {placement.axis};
    llvm::append_range(axes, sum.getAxes());
    sum.setAxesAttr(builder.getArrayAttr(axes));
  }

  /// The sum over the data is one with this, where there is one.
  void addUp(Value number, StringRef name, StringRef reason) {
    auto sum = number.hasOneUse()
                   ? dyn_cast<mesh::AllReduceOp>(*number.user_begin())
                   : mesh::AllReduceOp();
    if (!sum) {
      allReduce(number, name.str(), reason);
      return;
    }
    addAxis(sum);
  }

  func::FuncOp function;
  int64_t rank;
  const Coordinates &coordinates;
  const Placement &placement;
  OpBuilder builder;
  llvm::DenseSet<Operation *> gone, passed, shortened;
  llvm::DenseSet<Value> absent; // sums that mean nothing here
};
} // namespace

std::vector<std::vector<Operation *>>
opsOfRanks(func::FuncOp update, const Coordinates &coordinates, int64_t ranks) {
  const llvm::SmallBitVector all(ranks, true);
  llvm::DenseMap<Operation *, llvm::SmallBitVector> others; // where not on all
  auto ranksOfValue = [&](Value value) -> const llvm::SmallBitVector & {
    auto found = others.find(value.getDefiningOp());
    return found == others.end() ? all : found->second;
  };
  std::vector<std::vector<Operation *>> result(ranks);
  for (Operation &op : update.getBody().front()) {
    bool adds = isSum(&op);
    llvm::SmallBitVector here(ranks, !adds);
    for (Value operand : op.getOperands()) {
      if (adds)
        here |= ranksOfValue(operand);
      else
        here &= ranksOfValue(operand);
    }
    if (auto state = dyn_cast<StateOp>(op);
        state && isOfParameter(state.getKind()))
      if (auto own = ranksOf(coordinates, state.getName()); own.size() < 2) {
        here.reset();
        for (int64_t rank : own)
          here.set(rank);
      }
    for (unsigned rank : here.set_bits())
      result[rank].push_back(&op);
    if (!here.all())
      others.try_emplace(&op, std::move(here));
  }
  return result;
}

LogicalResult cutUpdate(func::FuncOp update, ArrayRef<Operation *> ops,
                        ModuleOp module, int64_t rank,
                        const Coordinates &coordinates,
                        const Placement &placement) {
  return Update(update, ops, module, rank, coordinates, placement).run();
}

} // namespace meshwork::pipeline
