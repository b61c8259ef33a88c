// One rank's part of the optimizer: its parameters, and what all stages add up.
#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Facts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/pipeline/Cut.h"

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

class Update {
public:
  Update(func::FuncOp whole, ModuleOp module, int64_t rank,
         const llvm::StringMap<SmallVector<int64_t>> &coordinates,
         const Placement &placement)
      : function(whole.cloneWithoutRegions()), rank(rank),
        coordinates(coordinates), placement(placement),
        builder(function.getContext()) {
    module.push_back(function);
    copyOwn(whole);
  }

  LogicalResult run() {
    addShared();
    prune();
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

  /// What is left of `whole` without the parameters that other ranks alone
  /// have: those are most of it. Sums keep the terms that are not copied until
  /// prune().
  void copyOwn(func::FuncOp whole) {
    Block &body = function.getBody().emplaceBlock();
    IRMapping copies;
    for (BlockArgument argument : whole.getArguments())
      copies.map(argument,
                 body.addArgument(argument.getType(), argument.getLoc()));
    builder.setInsertionPointToEnd(&body);
    for (Operation &op : whole.getBody().front()) {
      if (isOfOthers(&op))
        gone.insert(&op);
      else
        builder.clone(op, copies);
    }
  }

  bool isOfOthers(Operation *op) const {
    if (auto state = dyn_cast<StateOp>(op);
        state && isOfParameter(state.getKind()))
      return !isHere(state.getName()) && !isShared(state.getName());
    auto isGone = [&](Value value) {
      return gone.contains(value.getDefiningOp());
    };
    return isSum(op) ? llvm::all_of(op->getOperands(), isGone)
                     : llvm::any_of(op->getOperands(), isGone);
  }

  ArrayRef<int64_t> ranksOf(StringRef parameter) const {
    auto found = coordinates.find(parameter);
    return found == coordinates.end() ? ArrayRef<int64_t>() : found->second;
  }
  bool isHere(StringRef parameter) const {
    return llvm::is_contained(ranksOf(parameter), rank);
  }
  bool isShared(StringRef parameter) const {
    return ranksOf(parameter).size() > 1;
  }

  /// Gradients of parameters that several ranks have, once each has summed its
  /// own over the data, and magnitudes likewise. A group is all ranks along the
  /// axis, so one between them that has no such parameter adds zeros.
  void addShared() {
    for (auto state : llvm::to_vector(function.getOps<StateOp>())) {
      if (!startsAtZero(state.getKind()) || !isOfParameter(state.getKind()) ||
          !isShared(state.getName()))
        continue;
      Value value = state;
      while (value.hasOneUse() &&
             isa<mesh::CollectiveOpInterface>(*value.user_begin()))
        value = value.user_begin()->getResult(0);
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

  /// Whether it is neither read from a state nor set by the launcher.
  static bool isComputed(Value value) {
    auto op = value.getDefiningOp<TensorOpInterface>();
    return op && op.getStateUse() == StateUse::none && !op.isSource();
  }

  /// A sum of numbers, some of which other ranks have.
  static bool isSum(Operation *op) {
    return isa<MapOp>(op) && op->getNumResults() == 1 &&
           op->getNumOperands() > 0 &&
           cast<RankedTensorType>(op->getResult(0).getType()).getRank() == 0 &&
           llvm::all_of(op->getOperands(), isComputed);
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
      return absent.contains(value) || gone.contains(value.getDefiningOp());
    };
  }

  bool isCountedElsewhere(Value term) const {
    StateOp state = sourceOf(term);
    return state && state.getKind() == StateKind::gradient &&
           ranksOf(state.getName()).front() != rank;
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
      builder.setInsertionPointToStart(&terms);
      terms.getArgument(i).replaceAllUsesWith(arith::ConstantOp::create(
          builder, sum.getLoc(), builder.getF32FloatAttr(0)));
      terms.eraseArgument(i);
      sum->eraseOperand(i);
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
  /// others add zero.
  void addUpNumbers() {
    for (auto state : llvm::to_vector(function.getOps<StateOp>()))
      if (state.getKind() == StateKind::loss)
        addUp(state, "loss", "is made by the last stage");
      else if (state.getKind() == StateKind::metric)
        addUp(state, state.getName(), "is made by the stages");
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
    SmallVector<Attribute> axes = {placement.axis};
    llvm::append_range(axes, sum.getAxes());
    sum.setAxesAttr(builder.getArrayAttr(axes));
  }

  func::FuncOp function;
  int64_t rank;
  const llvm::StringMap<SmallVector<int64_t>> &coordinates;
  const Placement &placement;
  OpBuilder builder;
  llvm::DenseSet<Operation *> gone, passed;
  llvm::DenseSet<Value> absent; // sums that mean nothing here
};
} // namespace

LogicalResult
cutUpdate(func::FuncOp update, ModuleOp module, int64_t rank,
          const llvm::StringMap<SmallVector<int64_t>> &coordinates,
          const Placement &placement) {
  return Update(update, module, rank, coordinates, placement).run();
}

} // namespace meshwork::pipeline
