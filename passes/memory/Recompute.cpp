// Computes values of the forward pass again in the backward pass instead of
// keeping them. Works on local shapes with all collectives in place, so it
// knows no strategy: a gather that is not kept is made again like any other op.
#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/StageLists.h"
#include "dialects/transformer/StepFunctions.h"
#include "mlir/IR/IRMapping.h"
#include "passes/memory/Layers.h"
#include "passes/memory/Passes.h"

using namespace mlir;
namespace meshwork::memory {
#define GEN_PASS_DEF_RECOMPUTEPASS
#include "passes/memory/Passes.h.inc"
namespace {
using namespace transformer;

using Policy = spec::Recompute;

/// One policy for all layers, or one for each; none: selective. A stage of a
/// pipeline has some of the layers, under their numbers.
FailureOr<SmallVector<Policy>>
completed(ArrayRef<Policy> given, int64_t numLayers, bool isStage,
          function_ref<InFlightDiagnostic()> error) {
  SmallVector<Policy> policies(given);
  if (policies.empty())
    policies = {Policy::selective};
  if (llvm::is_contained(policies, Policy::byBudget))
    return error() << "recompute policy is '" << spec::wordOf(Policy::byBudget)
                   << "', expected none, selective, offload or full";
  if (policies.size() == 1)
    policies.resize(std::max<int64_t>(numLayers, 1), policies[0]);
  auto count = static_cast<int64_t>(policies.size());
  if (isStage ? count < numLayers : count != std::max<int64_t>(numLayers, 1))
    return error() << "found " << policies.size()
                   << " recompute policies, expected one, or one for each of "
                   << numLayers << " layers";
  return policies;
}

class Recompute {
public:
  Recompute(func::FuncOp function, const Layers &layers,
            ArrayRef<Policy> policies, bool keepGathered)
      : block(function.getBody().front()), layers(layers), lists(block),
        policies(policies), keepGathered(keepGathered) {}

  void run() {
    if (keepGathered)
      shareGathered();
    for (Operation &op : block)
      if (!isBackward(&op))
        classify(&op);
    for (Operation &op : llvm::make_early_inc_range(block))
      if (isBackward(&op))
        for (OpOperand &operand : op.getOpOperands())
          operand.set(again(operand.get(), &op));
    for (Operation &op : block)
      if (isSumOfRow(&op) && servesBackward(&op))
        setKept(&op);
  }

private:
  static bool isSame(Operation *a, Operation *b) {
    return a->getName() == b->getName() &&
           a->getOperands() == b->getOperands() &&
           a->getResultTypes() == b->getResultTypes() &&
           a->getInherentAttr("dim") == b->getInherentAttr("dim") &&
           a->getInherentAttr("axes") == b->getInherentAttr("axes");
  }

  /// The backward pass reads the weights that the forward pass has gathered.
  void shareGathered() {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!isBackward(&op) || !layers.isStatic(&op) ||
          !isa<mesh::CollectiveOpInterface>(op))
        continue;
      auto known =
          llvm::find_if(op.getOperand(0).getUsers(), [&](Operation *other) {
            return !isBackward(other) && isSame(&op, other);
          });
      if (known == op.getOperand(0).getUsers().end())
        continue;
      op.replaceAllUsesWith(*known);
      op.erase();
    }
  }

  /// Notes which ops run again. Of the others, the backward pass can have
  /// results that it reads itself, that cross layers, or that come from another
  /// stage.
  void classify(Operation *op) {
    if (isScalar(op) || (isSumOfRow(op) && policyOf(op) != Policy::full)) {
      available.insert(op);
      return;
    }
    bool sourcesAvailable = llvm::all_of(op->getOperands(), [&](Value v) {
      return !v.getDefiningOp() || available.contains(v.getDefiningOp());
    });
    bool isNeeded = llvm::any_of(op->getUsers(), isBackward);
    if (sourcesAvailable && mayRunAgain(op)) {
      dropped.insert(op);
      available.insert(op);
    } else if (isNeeded || layers.isStatic(op) || isa<mesh::ReceiveOp>(op) ||
               llvm::any_of(op->getResults(),
                            [&](Value v) { return layers.crosses(v); })) {
      available.insert(op);
    }
  }

  /// One number costs nothing to keep, and may be what a pass over a large
  /// tensor, or a sum over ranks, has left.
  static bool isScalar(Operation *op) {
    return op->getNumResults() > 0 &&
           llvm::all_of(op->getResultTypes(), [](Type type) {
             auto tensor = dyn_cast<RankedTensorType>(type);
             return tensor && tensor.getRank() == 0;
           });
  }

  /// One number per row, which takes a pass over the rows, as a norm's mean
  /// does. If it ran again, each kernel that reads the rows would make such a
  /// pass.
  static bool isSumOfRow(Operation *op) {
    auto reduce = dyn_cast<ReduceOp>(op);
    if (!reduce)
      return false;
    auto input = tensorType(reduce.getInput());
    int64_t kept = tensorType(reduce).getRank();
    return kept > 0 &&
           dimsOf(input).getNames().take_front(kept) ==
               dimsOf(reduce.getResult()).getNames() &&
           ShapedType::getNumElements(input.getShape().drop_front(kept)) >=
               leastColumns;
  }

  /// Whether kernels of the backward pass read `op`, or would compute it again.
  static bool servesBackward(Operation *op) {
    llvm::SetVector<Operation *> reached;
    reached.insert(op);
    for (size_t i = 0; i < reached.size(); ++i)
      for (Operation *user : reached[i]->getUsers()) {
        if (passOf(user) == PassKind::backward)
          return true;
        if (isFusible(user))
          reached.insert(user);
      }
    return false;
  }

  Policy policyOf(Operation *op) const {
    int64_t layer = layers.of(op);
    if (layer >= 0 && layer < layers.count())
      return policies[layer];
    // Outside the layers there is no block to run again.
    return std::min(Policy::selective, *llvm::max_element(policies));
  }

  bool mayRunAgain(Operation *op) const {
    if (isOfStep(op)) // It is kept through the step.
      return false;
    if (layers.isStatic(op)) // A gathered weight is gathered again, unless the
                             // spec says to keep it.
      return (!keepGathered && isa<mesh::CollectiveOpInterface>(op)) ||
             llvm::any_of(op->getOperands(), [&](Value v) {
               return dropped.contains(v.getDefiningOp());
             });
    switch (policyOf(op)) {
    case Policy::none:
      return false;
    case Policy::selective:
    case Policy::offload:
      return againOf(op) == Again::cheap;
    case Policy::full:
      return againOf(op) != Again::never && isMemoryEffectFree(op) &&
             llvm::none_of(op->getResults(),
                           [&](Value v) { return layers.crosses(v); });
    case Policy::byBudget:
      break; // checked before
    }
    llvm_unreachable("all policies are handled");
  }

  static Again againOf(Operation *op) {
    auto tensors = dyn_cast<TensorOpInterface>(op);
    return tensors ? tensors.getAgain() : Again::never;
  }

  /// `value` for use at `before`: itself, or what computes it again.
  Value again(Value value, Operation *before) {
    Operation *op = value.getDefiningOp();
    if (!dropped.contains(op))
      return value;
    Operation *clone = clones.lookup(op);
    if (!clone || !lists.isThere(clone, before)) {
      IRMapping mapping;
      for (Value operand : op->getOperands())
        mapping.map(operand, again(operand, before));
      clone = clones[op] = OpBuilder(before).clone(*op, mapping);
      lists.put(clone, before);
      setPass(clone,
              layers.isStatic(op) ? PassKind::backward : PassKind::recomputed);
    }
    return clone->getResult(cast<OpResult>(value).getResultNumber());
  }

  /// Of narrower rows, a number each would be no small part.
  static constexpr int64_t leastColumns = 32;

  Block &block;
  const Layers &layers;
  StageLists lists;
  ArrayRef<Policy> policies;
  bool keepGathered;
  llvm::DenseSet<Operation *> dropped, available;
  llvm::DenseMap<Operation *, Operation *> clones;
};

struct RecomputePass : impl::RecomputePassBase<RecomputePass> {
  using RecomputePassBase::RecomputePassBase;

  void runOnOperation() override {
    func::FuncOp function = microbatchOf(getOperation());
    if (!function)
      return signalPassFailure();
    Layers layers(function);
    FailureOr<SmallVector<Policy>> all =
        completed(llvm::to_vector_of<Policy>(policies), layers.count(),
                  /*isStage=*/getOperation()->getParentOp() != nullptr,
                  [&] { return getOperation().emitError(); });
    if (failed(all))
      return signalPassFailure();
    Recompute(function, layers, *all, keepGathered).run();
  }
};
} // namespace
} // namespace meshwork::memory
