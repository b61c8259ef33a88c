// What forward keeps for backward waits in the host's memory, of layers that
// ask for it.
//
// Each value gets two buffers on the device, one for either pass, and one in
// the host's memory between them. Copies stand where they are needed;
// -schedule-overlap moves them.
#include "dialects/transformer/Facts.h"
#include "mlir/IR/Builders.h"
#include "passes/schedule/HostCopies.h"
#include "passes/schedule/Passes.h"

using namespace mlir;
namespace meshwork::schedule {
#define GEN_PASS_DEF_OFFLOADACTIVATIONSPASS
#include "passes/schedule/Passes.h.inc"
namespace {

/// The uses of a buffer by instructions, each pass's in the order of the lists.
struct Kept {
  SmallVector<OpOperand *> forward, later;
  Operation *lastWrite = nullptr; // in the forward pass
};

/// Numbers of the instructions of a program, in the order of its lists.
class Places {
public:
  explicit Places(ProgramOp program) {
    for (ListOp list : listsOf(program))
      for (Operation &op : list.getBody().front())
        if (isInstruction(&op))
          places[&op] = places.size();
  }
  /// Of one within a repeat, or in no list, there is none.
  bool has(Operation *op) const { return places.contains(op); }
  size_t of(Operation *op) const { return places.lookup(op); }

private:
  llvm::DenseMap<Operation *, size_t> places;
};

ListOp listAround(Operation *op) { return cast<ListOp>(op->getParentOp()); }

bool writes(OpOperand *use) {
  auto op = cast<InstructionOpInterface>(use->getOwner());
  return use->getOperandNumber() >= op.getReads().size();
}

/// How one buffer is kept, if it is.
class Finder {
public:
  explicit Finder(const Places &places) : places(places) {}

  std::optional<Kept> find(BufferOp buffer) {
    Kept kept;
    std::optional<uint64_t> stage;
    for (Operation *view : buffer.getResult().getUsers())
      for (OpOperand &use : view->getUses())
        if (!add(use, stage, kept))
          return std::nullopt;
    sort(kept.forward);
    sort(kept.later);
    for (OpOperand *use : kept.forward)
      if (writes(use))
        kept.lastWrite = use->getOwner();
    return kept.lastWrite && !kept.later.empty() ? std::optional(kept)
                                                 : std::nullopt;
  }

private:
  bool add(OpOperand &use, std::optional<uint64_t> &stage, Kept &kept) {
    if (!places.has(use.getOwner()))
      return false;
    ListOp list = listAround(use.getOwner());
    if (stage && *stage != list.getStage())
      return false;
    stage = list.getStage();
    switch (list.getKind()) {
    case ListKind::forward:
      kept.forward.push_back(&use);
      return true;
    case ListKind::backward:
    case ListKind::input_grad:
    case ListKind::weight_grad:
      kept.later.push_back(&use);
      return true;
    default:
      return false;
    }
  }

  void sort(SmallVector<OpOperand *> &uses) const {
    llvm::sort(uses, [&](OpOperand *a, OpOperand *b) {
      return std::pair(places.of(a->getOwner()), a->getOperandNumber()) <
             std::pair(places.of(b->getOwner()), b->getOperandNumber());
    });
  }

  const Places &places;
};

/// Through the host's memory from one pass to the other.
void sendThroughHost(BufferOp buffer, const Kept &kept) {
  OpBuilder builder(buffer);
  mlir::Location loc = buffer.getLoc();
  int64_t bytes = buffer.getSizeBytes();
  auto make = [&](const Twine &what, bool onHost) -> Value {
    return makeBuffer(builder, loc, buffer.getName() + what, buffer.getKind(),
                      bytes, onHost, /*persistent=*/false);
  };
  Value host = make(" on the host", true), back = make(" for backward", false);
  builder.setInsertionPointAfter(kept.lastWrite);
  copyBytes(builder, loc, buffer.getName(), bytes, buffer, host);
  for (OpOperand *use : kept.later) {
    auto view = use->get().getDefiningOp<ViewOp>();
    builder.setInsertionPoint(use->getOwner());
    use->set(viewLike(builder, view, back));
    if (view->use_empty())
      view.erase();
  }
  builder.setInsertionPoint(kept.later.front()->getOwner());
  copyBytes(builder, loc, buffer.getName(), bytes, host, back);
}

struct OffloadActivationsPass
    : impl::OffloadActivationsPassBase<OffloadActivationsPass> {
  using OffloadActivationsPassBase::OffloadActivationsPassBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      run(program);
  }

private:
  void run(ProgramOp program) {
    Places places(program);
    for (auto buffer :
         llvm::make_early_inc_range(program.getBody().getOps<BufferOp>())) {
      if (buffer.getKind() != BufferKind::activations ||
          buffer.getPersistent() || buffer.getSizeBytes() < leastBytes)
        continue;
      std::optional<Kept> kept = Finder(places).find(buffer);
      if (kept && asks(kept->lastWrite))
        sendThroughHost(buffer, *kept);
    }
  }

  /// Whether the layer of an instruction has this policy.
  bool asks(Operation *op) const {
    std::optional<int64_t> layer = transformer::layerOf(op);
    if (!layer || policies.empty())
      return false;
    size_t number = policies.size() == 1 ? 0 : static_cast<size_t>(*layer);
    return number < policies.size() &&
           policies[number] == spec::Recompute::offload;
  }
};
} // namespace
} // namespace meshwork::schedule
