// State that is added to: zeros at the start of a step, or a first product.
#include "passes/schedule/Sums.h"
#include "dialects/transformer/Facts.h"
#include <set>

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

/// Lists of two stages of a rank may come in any order, so none of them is the
/// first to write what both add to.
static llvm::DenseSet<StateKey> addedToByStages(func::FuncOp function) {
  std::map<std::string, int64_t> stages;
  llvm::DenseSet<StateKey> keys;
  for (auto op : function.getOps<AccumulateOp>()) {
    auto [known, isNew] = stages.try_emplace(op.getName().str(), stageOf(op));
    if (!isNew && known->second != stageOf(op))
      keys.insert(op.getKey());
  }
  return keys;
}

void Sums::zero(StateKey key, RankedTensorType type) {
  if (zeroed.insert(key).second)
    builder.fillAtStepStart("zero " + key.role() + " " + key.name,
                            placement.states.of(key, type));
}

void Sums::start(func::FuncOp microbatch) {
  llvm::DenseSet<StateKey> shared = addedToByStages(microbatch);
  microbatch.walk([&](StateOp state) {
    if (startsAtZero(state.getKind()))
      zero(state.getKey(), tensorType(state));
  });
  microbatch.walk([&](AccumulateOp op) {
    if (shared.contains(op.getKey()) ||
        !isa_and_nonnull<ContractOp, ProductOp>(op.getValue().getDefiningOp()))
      zero(op.getKey(), tensorType(op.getValue()));
  });
  zeroThoseOfUpdate(microbatch);
}

/// What stages add up over all ranks, of which some have nothing to add: the
/// loss, gradients and magnitudes of what others share.
void Sums::zeroThoseOfUpdate(func::FuncOp microbatch) {
  std::set<StringRef> added;
  for (auto op : microbatch.getOps<AccumulateOp>())
    if (op.getKind() == StateKind::gradient)
      added.insert(op.getName());
  auto module = microbatch->getParentOfType<ModuleOp>();
  for (auto update : module.getOps<func::FuncOp>())
    for (auto state : update.getOps<StateOp>())
      if (startsAtZero(state.getKind()) &&
          !(state.getKind() == StateKind::gradient &&
            added.contains(state.getName())))
        zero(state.getKey(), tensorType(state));
}

FailureOr<Destination> Sums::destinationOf(Value value) {
  auto accumulate = value.hasOneUse()
                        ? dyn_cast<AccumulateOp>(*value.getUsers().begin())
                        : AccumulateOp();
  if (!accumulate) {
    FailureOr<Place> place = placement.of(value);
    if (failed(place))
      return failure();
    return Destination{*place, Accumulate::no};
  }
  StateKey key = accumulate.getKey();
  Place place = placement.states.of(key, tensorType(value));
  if (zeroed.contains(key) || !set.insert(key).second)
    return Destination{place, Accumulate::yes};
  return Destination{place, Accumulate::after_first, key};
}

void Sums::neverSet(Destination &destination) {
  if (destination.accumulate != Accumulate::after_first)
    return;
  builder.fillAtStepStart("zero gradient " + destination.key.name,
                          destination.place);
  zeroed.insert(destination.key);
  destination.accumulate = Accumulate::yes;
}

} // namespace meshwork::schedule
