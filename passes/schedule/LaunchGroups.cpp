// In program order, each launch joins the first group that stands after all
// that it needs, or else begins one. So only what joins moves, up to its group.
// A group that takes too many operands is cut, sorted by kernel: each launch
// then has few kernels, which is less code to compile.
#include "passes/schedule/LaunchGroups.h"

#include <set>

using namespace mlir;

namespace meshwork::schedule {
namespace {

class Grouping {
public:
  Grouping(const Uses &uses, const GroupLimits &limits,
           llvm::function_ref<int64_t(Operation *)> streamsOf)
      : uses(uses), limits(limits), streamsOf(streamsOf) {}

  void add(Operation *op) {
    size_t index = placeOf(op, uses[op]);
    groups[index].members.push_back(op);
    for (const Use &use : uses[op])
      note(use, index);
  }

  std::vector<LaunchGroup> finish() {
    std::vector<LaunchGroup> result;
    for (Group &group : groups)
      if (group.members.size() > 1)
        cut(group.members, result);
    return result;
  }

private:
  /// A view of rank 0.
  using Scalar = const plan::ViewInfo *;

  struct Group {
    SmallVector<Operation *> members;
    int64_t newBytes = 0;
  };

  struct Operands {
    std::set<Scalar> scalars; // that members read
    int64_t others = 0;       // views, and streams
  };

  struct Touch {
    Use use;
    size_t group; // the last one
  };

  size_t placeOf(Operation *op, ArrayRef<Use> own) {
    size_t least = 0;
    int64_t newBytes = passingBytes(own, /*onlyWritten=*/true);
    for (const Use &use : own)
      for (const Touch &touch : touches[use.buffer])
        if (use.conflicts(touch.use))
          least = std::max(least, touch.group + 1);
    bool joins = mayJoin(op, own.size(), newBytes);
    for (size_t index : joins ? ArrayRef(open) : ArrayRef<size_t>())
      if (index >= least &&
          groups[index].newBytes + newBytes <= limits.maxNewBytes) {
        groups[index].newBytes += newBytes;
        return index;
      }
    groups.push_back({{}, newBytes});
    if (joins)
      open.push_back(groups.size() - 1);
    return groups.size() - 1;
  }

  bool mayJoin(Operation *op, size_t operands, int64_t newBytes) const {
    auto fill = dyn_cast<FillOp>(op);
    return (!fill || hasKernelForm(fill)) && newBytes <= limits.maxNewBytes &&
           static_cast<int64_t>(operands) + streamsOf(op) <= limits.operands;
  }

  /// What all members read alike, like the learning rate, is one operand.
  SmallVector<Scalar> scalarsOf(Operation *op) const {
    SmallVector<Scalar> scalars;
    for (const Use &use : uses[op])
      if (!use.isWritten && use.view->shape.empty())
        scalars.push_back(use.view);
    return scalars;
  }

  bool takes(const Operands &operands, Operation *op) const {
    SmallVector<Scalar> scalars = scalarsOf(op);
    auto count = static_cast<int64_t>(operands.scalars.size());
    count += operands.others + op->getNumOperands() + streamsOf(op);
    for (const Scalar &scalar : scalars)
      count -= operands.scalars.contains(scalar);
    return count <= limits.operands;
  }

  void extend(Operands &operands, Operation *op) const {
    SmallVector<Scalar> scalars = scalarsOf(op);
    operands.scalars.insert(scalars.begin(), scalars.end());
    operands.others += op->getNumOperands() + streamsOf(op);
    operands.others -= static_cast<int64_t>(scalars.size());
  }

  /// Large ones come first, so that the last blocks are short.
  static std::tuple<int64_t, StringRef> orderOf(Operation *op) {
    auto launch = dyn_cast<LaunchOp>(op);
    return {-static_cast<int64_t>(cast<InstructionOpInterface>(op).getBytes()),
            launch ? launch.getKernel() : StringRef()};
  }

  void cut(ArrayRef<Operation *> members, std::vector<LaunchGroup> &result) {
    auto order = llvm::to_vector(llvm::seq<size_t>(0, members.size()));
    llvm::sort(order, [&](size_t a, size_t b) {
      return std::tuple(orderOf(members[a]), a) <
             std::tuple(orderOf(members[b]), b);
    });
    Operands operands;
    bool isFirst = true;
    for (size_t i : order) {
      if (isFirst || !takes(operands, members[i])) {
        result.push_back({members.front(), {}});
        operands = {};
      }
      isFirst = false;
      extend(operands, members[i]);
      result.back().members.push_back(members[i]);
    }
  }

  /// What all read, like the learning rate, is noted once.
  void note(const Use &use, size_t group) {
    SmallVector<Touch> &known = touches[use.buffer];
    for (Touch &touch : known)
      if (touch.use.view == use.view && touch.use.isWritten == use.isWritten) {
        touch.group = std::max(touch.group, group);
        return;
      }
    known.push_back({use, group});
  }

  const Uses &uses;
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
groupLaunches(ArrayRef<Operation *> run, const Uses &uses,
              const GroupLimits &limits,
              llvm::function_ref<int64_t(Operation *)> streamsOf) {
  Grouping grouping(uses, limits, streamsOf);
  for (Operation *op : run)
    grouping.add(op);
  return grouping.finish();
}

} // namespace meshwork::schedule
