// Which list the sum of a gradient runs under: of a pipeline, several make
// gradients, each those of its stage.
#include "passes/schedule/Overlap.h"
#include <numeric>

using namespace mlir;
namespace meshwork::schedule {

bool meetsOtherPrograms(CollectiveOp collective) {
  auto program = collective->getParentOfType<ProgramOp>();
  return program.getAxis() &&
         llvm::is_contained(collective.getAxes(), program.getAxisAttr());
}

namespace {

/// Where in a step gradients are made.
class Gradients {
public:
  Gradients(ProgramOp program, const OverlapSettings &settings)
      : uses(settings.uses) {
    std::span<const plan::Action> actions = plan::actionsOf(settings.tables);
    SmallVector<ListOp> lists = listsOf(program);
    SmallVector<int64_t> last(lists.size(), -1); // actions
    if (actions.empty()) // Without a table lists run once, as they stand.
      std::iota(last.begin(), last.end(), 0);
    for (auto [i, action] : llvm::enumerate(actions))
      last[action.list()] = i;
    for (auto [list, action] : llvm::zip_equal(lists, last)) {
      if (action < 0 ||
          !plan::isOfMicrobatch(static_cast<plan::ListKind>(list.getKind())))
        continue;
      if (list.getKind() == ListKind::backward ||
          list.getKind() == ListKind::weight_grad)
        ends.emplace_back(action, list);
      noteAdded(list, action);
    }
    llvm::sort(ends, llvm::less_first());
  }

  /// The list in whose last action what `sum` reads is complete; null: it never
  /// is. Nobody waits for what weights' gradients, or those of a last backward,
  /// begin; the gradient of an input is awaited by another rank.
  ListOp listFor(CollectiveOp sum) const {
    int64_t complete = -1;
    for (Value view : sum.getInputs()) {
      auto found = added.find(bufferOf(view));
      if (found == added.end())
        return {};
      complete = std::max(complete, found->second);
    }
    const auto *end = llvm::find_if(
        ends, [&](const auto &one) { return one.first >= complete; });
    return end == ends.end() ? ListOp() : end->second;
  }

private:
  void noteAdded(ListOp list, int64_t action) {
    for (Operation *op : stepsOf(list))
      for (Use use : uses[op])
        if (use.isWritten && use.buffer.getPersistent() &&
            use.buffer.getKind() == BufferKind::gradients) {
          int64_t &last = added.try_emplace(use.buffer, -1).first->second;
          last = std::max(last, action);
        }
  }

  const Uses &uses;
  /// The last action that adds to a buffer.
  llvm::DenseMap<Operation *, int64_t> added;
  /// The last actions of lists that make gradients of weights, in order.
  SmallVector<std::pair<int64_t, ListOp>> ends;
};
} // namespace

SmallVector<Operation *> stepsOf(ListOp list) {
  SmallVector<Operation *> all;
  for (Operation &op : list.getBody().front())
    if (isInstruction(&op))
      all.push_back(&op);
  return all;
}

void moveGradientSums(ProgramOp program, const OverlapSettings &settings) {
  ListOp update = listOf(program, ListKind::update);
  if (!update)
    return;
  Gradients gradients(program, settings);
  SmallVector<Operation *> stay;
  for (Operation *op : stepsOf(update)) {
    auto collective = dyn_cast<CollectiveOp>(op);
    bool isOfGradients =
        collective && !collective.getMakesLoss() &&
        llvm::all_of(collective.getInputs(), [](Value view) {
          return bufferOf(view).getKind() == BufferKind::gradients &&
                 bufferOf(view).getPersistent();
        });
    bool isFree = isOfGradients && !meetsOtherPrograms(collective) &&
                  llvm::none_of(stay, [&](Operation *other) {
                    return settings.uses.conflict(other, op);
                  });
    ListOp list = isFree ? gradients.listFor(collective) : ListOp();
    if (!list || !settings.pays(collective, settings.seconds(op))) {
      stay.push_back(op);
      continue;
    }
    collective.setLastOnly(true);
    collective.setPass(PassKind::backward);
    moveInstruction(op, &list.getBody().front(), nullptr);
  }
}

} // namespace meshwork::schedule
