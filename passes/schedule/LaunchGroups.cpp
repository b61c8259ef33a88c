// In program order, each launch joins the first group that stands after all
// that it needs and has room, or else begins one. So only what joins moves, up
// to its group.
#include "passes/schedule/LaunchGroups.h"

#include <set>

using namespace mlir;

namespace meshwork::schedule {
namespace {

class Grouping {
public:
  Grouping(const GroupLimits &limits,
           llvm::function_ref<int64_t(Operation *)> streamsOf)
      : limits(limits), streamsOf(streamsOf) {}

  void add(Operation *op) {
    SmallVector<Use> uses = usesOf(op);
    size_t index = placeOf(op, uses);
    groups[index].members.push_back(op);
    for (const Use &use : uses)
      note(use, index);
  }

  std::vector<LaunchGroup> finish() {
    std::vector<LaunchGroup> result;
    for (Group &group : groups)
      if (group.members.size() > 1)
        result.push_back(std::move(group.members));
    return result;
  }

private:
  /// Buffer, offset and type of a view of rank 0.
  using Scalar = std::tuple<const void *, int64_t, const void *>;

  struct Group {
    LaunchGroup members;
    std::set<Scalar> scalars; // that members read
    int64_t others = 0;       // views, and streams
    int64_t newBytes = 0;
  };

  struct Touch {
    Use use;
    size_t group; // the last one
  };

  size_t placeOf(Operation *op, ArrayRef<Use> uses) {
    size_t least = 0;
    for (const Use &use : uses)
      for (const Touch &touch : touches[use.buffer])
        if (use.conflicts(touch.use))
          least = std::max(least, touch.group + 1);
    bool joins = mayJoin(op, uses);
    for (size_t index : joins ? ArrayRef(open) : ArrayRef<size_t>())
      if (index >= least && takes(groups[index], op, uses)) {
        extend(groups[index], op, uses);
        return index;
      }
    groups.emplace_back();
    extend(groups.back(), op, uses);
    if (joins)
      open.push_back(groups.size() - 1);
    return groups.size() - 1;
  }

  bool mayJoin(Operation *op, ArrayRef<Use> uses) const {
    auto fill = dyn_cast<FillOp>(op);
    return (!fill || hasKernelForm(fill)) &&
           newBytesOf(uses) <= limits.maxNewBytes &&
           static_cast<int64_t>(uses.size()) + streamsOf(op) <= limits.operands;
  }

  static int64_t newBytesOf(ArrayRef<Use> uses) {
    int64_t bytes = 0;
    for (const Use &use : uses)
      if (use.isWritten && !BufferOp(use.buffer).getPersistent())
        bytes += use.end - use.begin;
    return bytes;
  }

  /// What all members read alike, like the learning rate, is one operand.
  static SmallVector<Scalar> scalarsOf(Operation *op) {
    SmallVector<Scalar> scalars;
    for (Value operand : op->getOperands().drop_back(countWrites(op)))
      if (cast<MemRefType>(operand.getType()).getRank() == 0) {
        auto view = operand.getDefiningOp<ViewOp>();
        scalars.emplace_back(view.getBuffer().getAsOpaquePointer(),
                             static_cast<int64_t>(view.getOffset()),
                             view.getType().getAsOpaquePointer());
      }
    return scalars;
  }

  bool takes(const Group &group, Operation *op, ArrayRef<Use> uses) const {
    SmallVector<Scalar> scalars = scalarsOf(op);
    auto views = static_cast<int64_t>(group.scalars.size() + uses.size());
    views += group.others + streamsOf(op);
    for (const Scalar &scalar : scalars)
      views -= group.scalars.contains(scalar);
    return views <= limits.operands &&
           group.newBytes + newBytesOf(uses) <= limits.maxNewBytes;
  }

  void extend(Group &group, Operation *op, ArrayRef<Use> uses) {
    SmallVector<Scalar> scalars = scalarsOf(op);
    group.scalars.insert(scalars.begin(), scalars.end());
    group.others +=
        static_cast<int64_t>(uses.size() - scalars.size()) + streamsOf(op);
    group.newBytes += newBytesOf(uses);
  }

  /// What all read, like the learning rate, is noted once.
  void note(const Use &use, size_t group) {
    SmallVector<Touch> &known = touches[use.buffer];
    for (Touch &touch : known)
      if (touch.use.begin == use.begin && touch.use.end == use.end &&
          touch.use.isWritten == use.isWritten) {
        touch.group = std::max(touch.group, group);
        return;
      }
    known.push_back({use, group});
  }

  const GroupLimits &limits;
  llvm::function_ref<int64_t(Operation *)> streamsOf;
  std::vector<Group> groups;
  SmallVector<size_t> open; // groups that take more
  llvm::DenseMap<Operation *, SmallVector<Touch>> touches; // by buffer
};
} // namespace

bool hasKernelForm(FillOp op) {
  auto type = cast<MemRefType>(op.getDst().getType());
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  return isa<FloatType>(type.getElementType()) && type.getRank() == 1 &&
         type.getNumElements() <= INT32_MAX &&
         succeeded(type.getStridesAndOffset(strides, offset)) &&
         strides.front() == 1;
}

std::vector<LaunchGroup>
groupLaunches(ArrayRef<Operation *> run, const GroupLimits &limits,
              llvm::function_ref<int64_t(Operation *)> streamsOf) {
  Grouping grouping(limits, streamsOf);
  for (Operation *op : run)
    grouping.add(op);
  return grouping.finish();
}

} // namespace meshwork::schedule
