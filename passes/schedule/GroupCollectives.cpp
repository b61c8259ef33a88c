// The order of collectives, before they are lowered: those of one kind side by
// side, so that they travel in one bucket.
#include "dialects/mesh/Chunk.h"
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/StageLists.h"
#include "passes/schedule/Lowering.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {
namespace {

/// What runs once a step runs before all else, so it stands there, with what it
/// reads: then gathers of what it makes can travel together.
class OfStepFirst {
public:
  explicit OfStepFirst(Block &body) : body(body) {
    // Parameters keep their order, which is that of files.
    auto all = llvm::map_to_vector(body, [](Operation &op) { return &op; });
    for (Operation *op : all)
      if (isa<transformer::ParameterOp>(op))
        hoist(op);
    for (Operation *op : all)
      if (isOfStep(op))
        hoist(op);
  }

private:
  void hoist(Operation *op) {
    if (!op || !known.insert(op).second)
      return;
    for (Value operand : op->getOperands())
      hoist(operand.getDefiningOp());
    last ? op->moveAfter(last) : op->moveBefore(&body, body.begin());
    last = op;
  }

  Block &body;
  Operation *last = nullptr; // that stands in front
  llvm::SmallDenseSet<Operation *> known;
};

/// Collectives of states first, level by level: those of all states, then what
/// reads their results. They need nothing else, and travel in few buckets.
llvm::SmallDenseSet<Operation *> hoistThoseOfStates(ArrayRef<Operation *> ops) {
  llvm::SmallDenseSet<Operation *> hoisted;
  SmallVector<Operation *> level;
  for (Operation *op : ops)
    if (readsState(op))
      level.push_back(op);
  Operation *anchor = nullptr; // the last state that one of them reads
  for (Operation *op : level)
    if (Operation *state = op->getOperand(0).getDefiningOp();
        !anchor || anchor->isBeforeInBlock(state))
      anchor = state;
  while (!level.empty()) {
    SmallVector<Operation *> next;
    for (Operation *op : level) {
      op->moveAfter(anchor);
      anchor = op;
      hoisted.insert(op);
      for (Operation *user : op->getUsers())
        if (isa<mesh::CollectiveOpInterface>(user))
          next.push_back(user);
    }
    level = std::move(next);
  }
  return hoisted;
}

/// A sum that only becomes a gradient's state, or begins in one: a stage
/// between two that share a weight adds nothing to the sum of its gradient, and
/// must come to it when they do.
bool isPassedOn(Operation *op,
                const llvm::SmallDenseSet<Operation *> &hoisted) {
  return hoisted.contains(op) ||
         llvm::any_of(op->getUsers(), [](Operation *user) {
           return cast<AssignOp>(user).getKind() == StateKind::gradient;
         });
}

/// What ends in states goes to the end, after all that computes, but for what
/// is passed on.
void sinkThoseToStates(Block &body, ArrayRef<Operation *> ops,
                       const llvm::SmallDenseSet<Operation *> &hoisted) {
  for (Operation *op : ops) {
    SmallVector<Operation *> users(op->getUsers());
    if (users.empty() || !llvm::all_of(users, llvm::IsaPred<AssignOp>) ||
        isPassedOn(op, hoisted))
      continue;
    op->moveBefore(body.getTerminator());
    for (Operation *user : users)
      user->moveBefore(body.getTerminator());
  }
}

/// Places in a block, kept while ops move: an op knows its own only until the
/// next move, and counting anew each time would take quadratic time. So there
/// is room for some between any two, and all are counted when it is used up.
class Places {
public:
  explicit Places(Block &body) : body(body) { count(); }
  int64_t of(Operation *op) const { return places.lookup(op); }
  /// In front of `other` and of what was moved there before.
  void moveBefore(Operation *op, Operation *other) {
    Operation *&front = moved[other];
    op->moveBefore(front ? front : other);
    front = op;
    auto [before, room] = roomAt(op);
    place(op, before + room - roomTaken(room));
  }
  void moveAfter(Operation *op, Operation *other) {
    op->moveAfter(other);
    auto [before, room] = roomAt(op);
    place(op, before + roomTaken(room));
  }

private:
  static constexpr int64_t spacing = int64_t{1} << 40; // 8 million ops fit
  /// Most ops follow each other to one place, from its side: little of the room
  /// there is taken by each.
  static int64_t roomTaken(int64_t room) { return (room >> 5) + 1; }

  void count() {
    int64_t next = 0;
    for (Operation &op : body)
      places[&op] = next += spacing;
  }
  /// Between its neighbours; something stands behind whatever moves.
  std::pair<int64_t, int64_t> roomAt(Operation *op) const {
    int64_t before = op->getPrevNode() ? of(op->getPrevNode()) : 0;
    return {before, of(op->getNextNode()) - before};
  }
  void place(Operation *op, int64_t at) {
    auto [before, room] = roomAt(op);
    if (room < 2)
      return count();
    places[op] = at;
  }

  Block &body;
  llvm::DenseMap<Operation *, int64_t> places;
  llvm::DenseMap<Operation *, Operation *> moved; // the front one
};

/// What goes the same way: hops side by side are one, as the gradients of keys
/// and of values are, which are used in turn.
bool isOneHop(Operation *op, Operation *next) {
  auto a = dyn_cast<mesh::PermuteOp>(op), b = dyn_cast<mesh::PermuteOp>(next);
  return a && b && a->getNextNode() == b && a.getAxes() == b.getAxes() &&
         a.getSources() == b.getSources() && b.getOperand() != a.getResult();
}

SmallVector<ArrayRef<Operation *>> journeys(ArrayRef<Operation *> ops) {
  SmallVector<ArrayRef<Operation *>> all;
  while (!ops.empty()) {
    size_t count = 1;
    while (count < ops.size() && isOneHop(ops[count - 1], ops[count]))
      ++count;
    all.push_back(ops.take_front(count));
    ops = ops.drop_front(count);
  }
  return all;
}

/// The first that needs one of them; null if none is needed, or where others do
/// whose list may run before the first one's.
Operation *firstUser(ArrayRef<Operation *> ops, const Places &places,
                     const StageLists &lists) {
  SmallVector<Operation *> users;
  for (Operation *op : ops)
    llvm::append_range(users, op->getUsers());
  if (users.empty())
    return nullptr;
  Operation *first = *llvm::min_element(users, [&](Operation *a, Operation *b) {
    return places.of(a) < places.of(b);
  });
  bool isFirst = llvm::all_of(
      users, [&](Operation *user) { return lists.isThere(first, user); });
  return isFirst ? first : nullptr;
}

/// The others stand where they are needed first; a small one that could run
/// together with an earlier one of its kind in the same list stands there.
void sinkToUsers(Block &body, ArrayRef<Operation *> ops,
                 const llvm::SmallDenseSet<Operation *> &fixed) {
  // Of the larger side, so that how many ranks there are decides nothing. What
  // is joined waits for its use in memory, so it has a limit too.
  constexpr uint64_t smallBytes = 1 << 16, joinedBytes = 1 << 20;
  Places places(body);
  StageLists lists(body);
  SmallVector<ArrayRef<Operation *>> all = journeys(ops);
  for (ArrayRef<Operation *> together : llvm::reverse(all))
    if (Operation *first = firstUser(together, places, lists);
        first && !fixed.contains(together.front()))
      for (Operation *op : llvm::reverse(together)) {
        places.moveBefore(op, first);
        lists.put(op, first);
      }
  struct Group {
    Operation *last = nullptr;
    uint64_t bytes = 0;
  };
  // By kind, axes and type: one bucket has one of each.
  llvm::DenseMap<std::tuple<OperationName, Attribute, Type>, Group> groups;
  for (Operation *op : ops) {
    uint64_t bytes = std::max(bytesOfType(op->getOperand(0).getType()),
                              bytesOfType(op->getResult(0).getType()));
    if (fixed.contains(op) || bytes > smallBytes || mesh::isChunk(op))
      continue;
    Operation *input = op->getOperand(0).getDefiningOp();
    auto &[last, sum] =
        groups[{op->getName(), cast<mesh::CollectiveOpInterface>(op).getAxes(),
                tensorType(op->getOperand(0)).getElementType()}];
    bool isSamePass = last && isBackward(last) == isBackward(op);
    bool isChain = input && input->getName() == op->getName(); // hops
    bool joins = isSamePass && sum + bytes <= joinedBytes &&
                 places.of(last) < places.of(op) && input && !isChain &&
                 places.of(input) < places.of(last) &&
                 lists.of(last) == lists.of(op);
    if (joins)
      places.moveAfter(op, last);
    sum = joins ? sum + bytes : bytes;
    last = op;
  }
}
} // namespace

void groupCollectives(Block &body) {
  OfStepFirst{body};
  SmallVector<Operation *> ops;
  for (Operation &op : body)
    if (isa<mesh::CollectiveOpInterface>(op))
      ops.push_back(&op);
  llvm::SmallDenseSet<Operation *> fixed = hoistThoseOfStates(ops);
  sinkThoseToStates(body, ops, fixed);
  sinkToUsers(body, ops, fixed);
}

} // namespace meshwork::schedule
