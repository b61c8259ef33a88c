// Which values are stored, and which kernels compute them.
//
// A stored value's cone is everything fusible that it is computed from, back to
// stored values. A value that is not stored is computed again in each cone
// that needs it: cheap, when the cone loads its operands anyway. So a value is
// stored when an op outside clusters needs it, or when several kernels would
// load two large operands in its place. Which kernels there are shows only
// when they are formed, so they are formed twice.
#include "passes/fusion/Clusters.h"
#include "dialects/transformer/Dims.h"
#include "dialects/transformer/Facts.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::fusion {

ReductionShape shapeOf(ReduceOp op) {
  DimsAttr input = dimsOf(op.getInput()), reduced = op.getDims();
  size_t rank = input.getNames().size(), count = reduced.getNames().size();
  if (count == 1 && reduced.getNames()[0] == dims::chunks)
    return ReductionShape::vertical;
  auto allReduced = [&](ArrayRef<StringAttr> names) {
    return llvm::all_of(
        names, [&](StringAttr name) { return reduced.find(name) >= 0; });
  };
  if (count == rank || allReduced(input.getNames().take_front(count)))
    return ReductionShape::column;
  return allReduced(input.getNames().take_back(count)) ? ReductionShape::row
                                                       : ReductionShape::other;
}

/// The dims over which `op` runs.
static RankedTensorType spaceOf(Operation *op) {
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return tensorType(shapeOf(reduce) == ReductionShape::vertical
                          ? Value(reduce.getResult())
                          : Value(reduce.getInput()));
  return tensorType(op->getResult(0));
}

/// The columns that `op` demands of its kernel, if it does.
static std::optional<DimsAttr> columnsOf(Operation *op) {
  if (isa<RollOp>(op)) {
    auto names = dimsOf(op->getResult(0)).getNames();
    return DimsAttr::get(op->getContext(), names.take_back(1));
  }
  auto reduce = dyn_cast<ReduceOp>(op);
  if (!reduce)
    return std::nullopt;
  switch (shapeOf(reduce)) {
  case ReductionShape::row:
    return reduce.getDims();
  case ReductionShape::column: // A sum over everything takes any columns.
    if (tensorType(reduce).getRank() == 0)
      return std::nullopt;
    return dimsOf(reduce.getResult());
  case ReductionShape::vertical:
    return dimsOf(reduce.getResult());
  case ReductionShape::other:
    return std::nullopt;
  }
  llvm_unreachable("all shapes are handled");
}

/// What the step makes for microbatches is stored too, or each would make it
/// again.
void Clustering::findStored() {
  int64_t list = -1; // where that of a pipeline's stage begins
  for (Operation &op : block) {
    if (!isFusible(&op)) {
      number[&op] = anchors.size();
      if (isa<StageListOp>(op))
        list = static_cast<int64_t>(anchors.size());
      anchors.push_back(&op);
      continue;
    }
    notBefore[&op] =
        staysBehind(&op) ? static_cast<int64_t>(anchors.size()) - 1 : list;
    for (OpResult result : op.getResults())
      if (isKept(&op) || llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !isFusible(user) || isOfStep(user) != isOfStep(&op);
          }))
        stored.insert(result);
  }
}

/// Whether kernels that differ from its users' would each compute `value` from
/// two large operands. A value that shares its kernels with all its users is
/// better stored after them.
bool Clustering::worthStoring(
    OpResult value,
    const DenseMap<Operation *, SmallVector<int64_t>> &kernels) {
  ArrayRef<int64_t> own = kernels.at(value.getOwner());
  if (own.size() < 2 || stored.contains(value))
    return false;
  if (llvm::all_of(value.getUsers(), [&](Operation *user) {
        return kernels.lookup(user) == own;
      }))
    return false;
  FailureOr<const Cone *> cone = coneOf(value);
  if (failed(cone))
    return true;
  int64_t size = tensorType(value).getNumElements();
  auto isLarge = [&](Value leaf) {
    return tensorType(leaf).getNumElements() * 4 >= size;
  };
  return size > 1 && llvm::count_if((*cone)->leaves, isLarge) >= 2;
}

void Clustering::storeShared(ArrayRef<Operation *> order) {
  DenseMap<Operation *, SmallVector<int64_t>> kernels;
  for (auto [index, cluster] : llvm::enumerate(clusters))
    for (Operation *op : cluster.members)
      kernels[op].push_back(index);
  clusters.clear();
  clusterOf.clear();
  for (Operation *op : order)
    if (isa<MapOp>(op) && kernels.contains(op))
      for (OpResult result : op->getResults())
        if (worthStoring(result, kernels))
          stored.insert(result);
}

/// Adds `op` to the cone unless their spaces or columns do not fit.
bool Clustering::addMember(Cone &cone, Operation *op) {
  if (auto reduce = dyn_cast<ReduceOp>(op);
      reduce && shapeOf(reduce) == ReductionShape::other)
    return false;
  RankedTensorType space = spaceOf(op);
  if (!cone.space || isSubspace(cone.space, space))
    cone.space = space;
  else if (!isSubspace(space, cone.space))
    return false;
  if (std::optional<DimsAttr> columns = columnsOf(op)) {
    if (cone.columns && *cone.columns != *columns)
      return false;
    cone.columns = columns;
  }
  cone.members.insert(op);
  return true;
}

/// Whether the vertical sums in the cone, which have no rows, fit its space.
static bool verticalsFit(const Cone &cone) {
  return llvm::all_of(cone.members, [&](Operation *op) {
    auto reduce = dyn_cast<ReduceOp>(op);
    return !reduce || shapeOf(reduce) != ReductionShape::vertical ||
           tensorType(reduce).getRank() == cone.space.getRank();
  });
}

static bool reduces(const SetVector<Operation *> &members) {
  return llvm::any_of(members, llvm::IsaPred<ReduceOp>);
}

bool isTransposed(Value root, RankedTensorType space) {
  return tensorType(root).getRank() == space.getRank() &&
         dimsOf(root) != dimsOf(space);
}

/// A transposed copy walks as its operands lie, beside copies that lie so, too:
/// a kernel then reads whole vectors, and turns tiles.
static void walkAsOperandsLie(Cone &cone) {
  if (cone.columns || reduces(cone.members))
    return;
  for (Value leaf : cone.leaves)
    if (isTransposed(leaf, cone.space) &&
        isSubspace(cone.space, tensorType(leaf))) {
      cone.space = tensorType(leaf);
      return;
    }
}

/// What is reduced on the way to a transposed copy: a kernel that reduces rows
/// holds rows, one that transposes holds tiles.
static Value reducedForCopy(const Cone &cone) {
  if (isTransposed(cone.root, cone.space))
    for (Operation *op : cone.members)
      if (isa<ReduceOp>(op) && op->getResult(0) != cone.root)
        return op->getResult(0);
  return nullptr;
}

/// What `root` is computed from and is not stored yet, if anything.
Value Clustering::operandToStore(Value root) {
  for (Value operand : root.getDefiningOp()->getOperands())
    if (isFusible(operand.getDefiningOp()) && !stored.contains(operand))
      return operand;
  return nullptr;
}

bool Clustering::areTooMany(const SetVector<Value> &leaves) {
  size_t count = leaves.size();
  if (folded.copies > 0)
    for (Value leaf : leaves)
      if (Operation *op = leaf.getDefiningOp())
        count += folded.times(layerOf(op)) - 1;
  isTooDeep |= count > maxLeaves && leaves.size() <= maxLeaves;
  return leaves.size() > maxLeaves;
}

/// Follows `root` back to stored values. Where something does not fit in one
/// kernel, the value at that border is stored, and the tracing starts again.
FailureOr<Cone> Clustering::trace(Value root) {
  for (;;) {
    Cone cone;
    cone.root = root;
    SmallVector<Value> work = {root};
    Value border;
    while (!work.empty() && !border) {
      Value value = work.pop_back_val();
      Operation *op = value.getDefiningOp();
      bool isLeaf = value != root && (stored.contains(value) || !isFusible(op));
      if (isLeaf) {
        cone.leaves.insert(value);
        if (areTooMany(cone.leaves))
          border = operandToStore(root);
      } else if (!cone.members.contains(op)) {
        if (!addMember(cone, op))
          border = value;
        else
          work.append(op->operand_begin(), op->operand_end());
      }
    }
    if (!border)
      border = reducedForCopy(cone);
    if (!border && verticalsFit(cone)) {
      walkAsOperandsLie(cone);
      return cone;
    }
    if (!border) {
      for (Operation *op : cone.members)
        if (auto reduce = dyn_cast<ReduceOp>(op);
            reduce && shapeOf(reduce) == ReductionShape::vertical &&
            reduce.getResult() != root)
          border = reduce.getResult();
    }
    if (!border || border == root)
      return failure();
    stored.insert(border);
  }
}

/// Whether the values inside `cone` are still computed, not loaded.
bool Clustering::isWhole(const Cone &cone) const {
  return llvm::all_of(cone.members, [&](Operation *op) {
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      return !stored.contains(operand) || cone.leaves.contains(operand);
    });
  });
}

/// Values are stored, and never taken back, so a cone stays as it was traced
/// until one inside it is.
FailureOr<const Cone *> Clustering::coneOf(Value root) {
  auto known = cones.find(root);
  if (known != cones.end() && isWhole(*known->second))
    return known->second.get();
  FailureOr<Cone> cone = trace(root);
  if (failed(cone))
    return failure();
  auto &entry = cones[root];
  entry = std::make_unique<Cone>(std::move(*cone));
  return entry.get();
}

static bool isMaximumOfAll(Operation *op) {
  auto reduce = dyn_cast<ReduceOp>(op);
  return reduce && reduce.getKind() == Reduction::max &&
         shapeOf(reduce) == ReductionShape::column &&
         tensorType(reduce).getRank() == 0;
}

/// Whether both may be of one kernel that transposes. Tiles of each operand
/// take registers, so both read the same; numbers take none worth counting.
bool Clustering::fitTiles(const Cluster &cluster, const Cone &cone) const {
  auto mayReduce = [&](Operation *op) {
    return !isa<ReduceOp>(op) || (tileMaxima && isMaximumOfAll(op));
  };
  auto isTile = [&](Value leaf) {
    return !tileMaxima || tensorType(leaf).getRank() > 0;
  };
  auto areIn = [&](const SetVector<Value> &some, const SetVector<Value> &all) {
    return llvm::all_of(
        some, [&](Value leaf) { return !isTile(leaf) || all.contains(leaf); });
  };
  return llvm::all_of(cone.members, mayReduce) &&
         llvm::all_of(cluster.members, mayReduce) &&
         areIn(cone.leaves, cluster.leaves) &&
         areIn(cluster.leaves, cone.leaves);
}

/// Whether the cone may run in `cluster`, the one numbered `index`.
bool Clustering::join(Cluster &cluster, int64_t index, const Cone &cone,
                      int64_t place) {
  if (cone.space != cluster.space &&
      !(cone.space.getShape() == cluster.space.getShape() &&
        dimsOf(cone.space) == dimsOf(cluster.space)))
    return false;
  if (cone.columns && cluster.columns && *cone.columns != *cluster.columns)
    return false;
  if (isOfStep(cone.root.getDefiningOp()) !=
      isOfStep(cluster.roots.front().getDefiningOp()))
    return false; // They run in lists of their own.
  size_t more = llvm::count_if(
      cone.leaves, [&](Value leaf) { return !cluster.leaves.contains(leaf); });
  if (cluster.leaves.size() + more > std::max(maxLeaves, cone.leaves.size()))
    return false;
  auto transposes = [&](Value root) { return isTransposed(root, cone.space); };
  if ((transposes(cone.root) || llvm::any_of(cluster.roots, transposes)) &&
      !fitTiles(cluster, cone))
    return false;
  bool shares = false;
  for (Value leaf : cone.leaves) {
    auto known = clusterOf.find(leaf);
    if (known != clusterOf.end() && known->second > index)
      return false; // Made by a later kernel.
    shares |= cluster.leaves.contains(leaf) ||
              (known != clusterOf.end() && known->second == index);
  }
  return shares && place <= cluster.place;
}

void Clustering::place(const Cone &cone) {
  // What is computed again must not be there from the start, nor copies of
  // weights in 8 bits.
  int64_t at = notBefore.lookup_or(cone.root.getDefiningOp(), -1);
  for (Value leaf : cone.leaves) {
    if (auto known = clusterOf.find(leaf); known != clusterOf.end())
      at = std::max(at, clusters[known->second].place);
    else if (Operation *op = leaf.getDefiningOp())
      at = std::max(at, number.at(op));
  }
  int64_t index = clusters.size();
  for (int64_t i = index - 1; i >= 0 && i >= index - 16;
       --i) // Far ones share nothing worth a search.
    if (join(clusters[i], i, cone, at)) {
      index = i;
      break;
    }
  if (index == static_cast<int64_t>(clusters.size()))
    clusters.push_back({{}, {}, {}, cone.space, cone.columns, at});
  Cluster &cluster = clusters[index];
  cluster.roots.push_back(cone.root);
  cluster.members.insert_range(cone.members);
  for (Value leaf : cone.leaves)
    if (auto known = clusterOf.find(leaf);
        known == clusterOf.end() || known->second != index)
      cluster.leaves.insert(leaf);
  if (cone.columns)
    cluster.columns = cone.columns;
  areTooMany(cluster.leaves);
  clusterOf[cone.root] = index;
}

LogicalResult Clustering::placeAll(ArrayRef<Operation *> order) {
  // Tracing may store more values. They lie before the root that found them,
  // so it is done for all before any is placed.
  for (size_t known = 0; known != stored.size();) {
    known = stored.size();
    for (Operation *op : order)
      for (OpResult result : op->getResults())
        if (stored.contains(result) && failed(coneOf(result)))
          return op->emitOpError("has no kernel form: its reduction is over "
                                 "neither leading nor trailing dims");
  }
  // Program order, so that operands are placed before users.
  for (Operation *op : order)
    for (OpResult result : op->getResults())
      if (stored.contains(result)) {
        FailureOr<const Cone *> cone = coneOf(result);
        if (failed(cone))
          return failure();
        place(**cone);
      }
  return success();
}

LogicalResult Clustering::run() {
  findStored();
  SmallVector<Operation *> order;
  for (Operation &op : block)
    if (isFusible(&op))
      order.push_back(&op);
  if (failed(placeAll(order)))
    return failure();
  storeShared(order);
  if (failed(placeAll(order)))
    return failure();
  return isTooDeep ? block.getParentOp()->emitOpError(
                         "has kernels that would read too much in all layers")
                   : success();
}

} // namespace meshwork::fusion
