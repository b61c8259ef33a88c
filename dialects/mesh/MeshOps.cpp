// Verifiers of collectives.
#include "dialects/mesh/Mesh.h"
#include "meshwork/Plan/Ranges.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace meshwork::mesh;

#include "dialects/mesh/MeshDialect.cpp.inc"
#include "dialects/mesh/MeshInterfaces.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/mesh/MeshOps.cpp.inc"

void MeshDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialects/mesh/MeshOps.cpp.inc"
      >();
}

/// C1: axes are there, of the mesh where there is one, and named once. Returns
/// the ranks of a group, or 0 where no mesh tells.
static FailureOr<int64_t> groupSize(Operation *op, ArrayRef<StringAttr> axes) {
  llvm::SmallDenseSet<Attribute> seen;
  MeshAttr mesh = meshOf(op);
  int64_t ranks = mesh ? 1 : 0;
  if (axes.empty())
    return op->emitOpError() << "(C1) names no axis";
  for (StringAttr axis : axes) {
    if (!seen.insert(axis).second)
      return op->emitOpError() << "(C1) names axis " << axis << " twice";
    if (mesh && mesh.find(axis) < 0)
      return op->emitOpError()
             << "(C1) names axis " << axis << ", expected one of " << mesh;
    if (mesh)
      ranks *= mesh.sizeOf(axis);
  }
  return ranks;
}

static FailureOr<int64_t> groupSize(Operation *op, ArrayAttr axes) {
  return groupSize(op, llvm::to_vector(axes.getAsRange<StringAttr>()));
}

/// C2: along `dim`, `part` holds one of `ranks` blocks of `whole`.
static LogicalResult checkBlock(Operation *op, Type partType, Type wholeType,
                                int64_t dim, int64_t ranks) {
  auto part = cast<RankedTensorType>(partType),
       whole = cast<RankedTensorType>(wholeType);
  if (dim < 0 || dim >= whole.getRank() || part.getRank() != whole.getRank() ||
      part.getElementType() != whole.getElementType())
    return op->emitOpError()
           << "(C2) dim " << dim << " of " << part << " and " << whole
           << " is not a dim of two tensors of one kind";
  if (ranks > 0 &&
      part.getDimSize(dim) !=
          static_cast<int64_t>(llvm::divideCeil(whole.getDimSize(dim), ranks)))
    return op->emitOpError()
           << "(C2) dim " << dim << " has " << part.getDimSize(dim)
           << " elements, expected ceil(" << whole.getDimSize(dim) << " / "
           << ranks << ")";
  return success();
}

/// C2: all dims but those in `changed` are equal.
static LogicalResult checkOthers(Operation *op, Type a, Type b,
                                 ArrayRef<int64_t> changed) {
  auto first = cast<RankedTensorType>(a), second = cast<RankedTensorType>(b);
  for (int64_t i = 0; i < first.getRank(); ++i)
    if (!llvm::is_contained(changed, i) &&
        first.getDimSize(i) != second.getDimSize(i))
      return op->emitOpError()
             << "(C2) dim " << i << " has " << first.getDimSize(i) << " and "
             << second.getDimSize(i) << " elements, expected equal sizes";
  return success();
}

LogicalResult ReshardOp::verify() {
  auto onError = [&] { return emitOpError("(C1) "); };
  return failure(
      failed(checkSharding(getSource(), getType(), meshOf(*this), onError)) ||
      failed(checkSharding(getTarget(), getType(), meshOf(*this), onError)));
}

LogicalResult AllReduceOp::verify() { return groupSize(*this, getAxes()); }

LogicalResult AllGatherOp::verify() {
  FailureOr<int64_t> ranks = groupSize(*this, getAxes());
  int64_t dim = getDim();
  return failure(
      failed(ranks) ||
      failed(checkBlock(*this, getInput().getType(), getType(), dim, *ranks)) ||
      failed(checkOthers(*this, getInput().getType(), getType(), dim)));
}

LogicalResult ReduceScatterOp::verify() {
  FailureOr<int64_t> ranks = groupSize(*this, getAxes());
  int64_t dim = getDim();
  return failure(
      failed(ranks) ||
      failed(checkBlock(*this, getType(), getInput().getType(), dim, *ranks)) ||
      failed(checkOthers(*this, getInput().getType(), getType(), dim)));
}

LogicalResult SliceOp::verify() {
  FailureOr<int64_t> ranks = groupSize(*this, getAxes());
  int64_t dim = getDim();
  return failure(
      failed(ranks) ||
      failed(checkBlock(*this, getType(), getInput().getType(), dim, *ranks)) ||
      failed(checkOthers(*this, getInput().getType(), getType(), dim)));
}

LogicalResult AllToAllOp::verify() {
  FailureOr<int64_t> ranks = groupSize(*this, getAxes());
  int64_t gather = getGatherDim(), split = getSplitDim();
  if (gather == split)
    return emitOpError() << "(C2) gathers and splits dim " << gather
                         << "; the two differ";
  return failure(failed(ranks) ||
                 failed(checkBlock(*this, getInput().getType(), getType(),
                                   gather, *ranks)) ||
                 failed(checkBlock(*this, getType(), getInput().getType(),
                                   split, *ranks)) ||
                 failed(checkOthers(*this, getInput().getType(), getType(),
                                    {gather, split})));
}

LogicalResult PermuteOp::verify() {
  FailureOr<int64_t> ranks = groupSize(*this, getAxes());
  if (failed(ranks))
    return failure();
  auto count = static_cast<int64_t>(getSources().size());
  llvm::SmallBitVector given(count);
  bool isFine = count == (*ranks ? *ranks : count);
  for (int64_t source : getSources()) {
    if (source == -1)
      continue;
    isFine &= source >= 0 && source < count && !given.test(source);
    if (isFine)
      given.set(source);
  }
  if (isFine)
    return success();
  return emitOpError() << "(C2) sources are not a permutation of the "
                       << (*ranks ? *ranks : count)
                       << " indices of the group, of which some may be -1";
}

template <typename Op> static LogicalResult verifyPart(Op op) {
  if (failed(groupSize(op, op.getAxes())))
    return failure();
  int64_t size = op.getSize();
  if (size < 1)
    return op.emitOpError()
           << "(C1) size is " << size << ", expected a positive number";
  return success();
}
/// C1 of what moves between stages.
template <typename StageOp> static LogicalResult verifyStageOp(StageOp op) {
  FailureOr<int64_t> ranks = groupSize(op, ArrayRef(op.getAxisAttr()));
  if (failed(ranks))
    return failure();
  auto peer = static_cast<int64_t>(op.getPeer());
  if (peer < 0 || (*ranks > 0 && peer >= *ranks))
    return op.emitOpError()
           << "(C1) has peer " << peer << " along axis " << op.getAxisAttr()
           << ", which has " << *ranks << " coordinates";
  return success();
}

LogicalResult SendOp::verify() { return verifyStageOp(*this); }
LogicalResult ReceiveOp::verify() { return verifyStageOp(*this); }

LogicalResult CoordinateOp::verify() { return verifyPart(*this); }
LogicalResult ExtentOp::verify() { return verifyPart(*this); }

/// Of a part that is one block.
template <typename Op>
static PartNumbers numbersOf(Op op, PartNumbers::Kind kind) {
  auto axes = llvm::to_vector(op.getAxes().template getAsRange<StringAttr>());
  return {kind, DimShardingAttr::of(op.getContext(), axes),
          static_cast<int64_t>(op.getSize())};
}
PartNumbers CoordinateOp::getNumbers() {
  return numbersOf(*this, PartNumbers::coordinate);
}
PartNumbers ExtentOp::getNumbers() {
  return numbersOf(*this, PartNumbers::extent);
}
PartNumbers PositionsOp::getNumbers() {
  return {PartNumbers::positions, getSplit(), static_cast<int64_t>(getSize()),
          static_cast<int64_t>(getHop())};
}

std::vector<meshwork::layout::Cut>
meshwork::mesh::cutsOf(MeshAttr mesh, DimShardingAttr split) {
  std::vector<layout::Cut> cuts;
  for (StringAttr axis : split.getAxes())
    layout::addCut(cuts, {mesh.sizeOf(axis), 0, split.layoutOf(axis)});
  return cuts;
}

LogicalResult PositionsOp::verify() {
  FailureOr<int64_t> ranks = groupSize(*this, getSplit().getAxes());
  int64_t size = getSize();
  if (failed(ranks))
    return failure();
  if (size < 1)
    return emitOpError() << "(C1) size is " << size
                         << ", expected a positive number";
  int64_t found = cast<RankedTensorType>(getType()).getDimSize(0);
  if (*ranks == 0)
    return success();
  if (auto hop = static_cast<int64_t>(getHop()); hop < 0 || hop >= *ranks)
    return emitOpError() << "(C3) has the hop " << hop
                         << ", expected 0 to less than the " << *ranks
                         << " ranks";
  int64_t expected =
      layout::storedSize(size, cutsOf(meshOf(*this), getSplit()));
  if (found == expected)
    return success();
  return emitOpError() << "(C2) has " << found << " elements, expected "
                       << expected << ", the part of a rank";
}

Movement AllReduceOp::getMovement() {
  return {.kind = CollectiveKind::all_reduce, .reduction = getReduction()};
}
Movement AllGatherOp::getMovement() {
  return {.kind = CollectiveKind::all_gather,
          .dim = static_cast<int64_t>(getDim())};
}
Movement ReduceScatterOp::getMovement() {
  return {.kind = CollectiveKind::reduce_scatter,
          .reduction = getReduction(),
          .dim = static_cast<int64_t>(getDim())};
}
Movement AllToAllOp::getMovement() {
  return {.kind = CollectiveKind::all_to_all,
          .dim = static_cast<int64_t>(getGatherDim()),
          .toDim = static_cast<int64_t>(getSplitDim())};
}
Movement PermuteOp::getMovement() {
  return {.kind = CollectiveKind::permute, .sources = getSources()};
}
Movement SliceOp::getMovement() {
  return {.kind = std::nullopt, .dim = static_cast<int64_t>(getDim())};
}

static uint64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return static_cast<uint64_t>(type.getNumElements()) *
         type.getElementTypeBitWidth() / 8;
}
static uint64_t ringShare(uint64_t bytes, int64_t ranks) {
  return bytes / ranks * (ranks - 1);
}

uint64_t AllReduceOp::getBytesSent(int64_t ranks) {
  return 2 * ringShare(bytesOf(getInput()), ranks);
}
uint64_t AllGatherOp::getBytesSent(int64_t ranks) {
  return bytesOf(getInput()) * (ranks - 1);
}
uint64_t ReduceScatterOp::getBytesSent(int64_t ranks) {
  return bytesOf(getResult()) * (ranks - 1);
}
uint64_t AllToAllOp::getBytesSent(int64_t ranks) {
  return ringShare(bytesOf(getInput()), ranks);
}
uint64_t PermuteOp::getBytesSent(int64_t) { return bytesOf(getInput()); }
uint64_t SliceOp::getBytesSent(int64_t) { return 0; }
