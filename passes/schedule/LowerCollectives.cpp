// Collectives to instructions, in buckets: neighbours of one kind travel
// together.
#include "dialects/transformer/Facts.h"
#include "passes/schedule/LowerToSchedule.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

static bool readsState(Operation *op) {
  return isa_and_nonnull<StateOp>(op->getOperand(0).getDefiningOp());
}

/// Where the result of a collective goes.
FailureOr<Place> Lowering::placeOfResult(mesh::CollectiveOpInterface op,
                                         const Place &input) {
  Value operand = op->getOperand(0), result = op->getResult(0);
  bool isState = readsState(op);
  bool isLast = operand.hasOneUse() && operand.getDefiningOp() &&
                !isa<transformer::ParameterOp, StateOp, SliceOp, mesh::SliceOp>(
                    operand.getDefiningOp());
  bool isPart = llvm::any_of(result.getUsers(), llvm::IsaPred<UnsliceOp>);
  if (isa<mesh::AllReduceOp>(op) && !isPart && (isState || isLast))
    return input;
  if (auto scatter = dyn_cast<mesh::ReduceScatterOp>(*op); scatter && isState) {
    int64_t dim = scatter.getDim(), size = tensorType(result).getDimSize(dim);
    if (tensorType(operand).getDimSize(dim) ==
        size * placement.groupSize(scatter.getAxes()))
      return Placement::block(input, dim, size, scatter.getAxes());
  }
  return placeOfPart(operand, result);
}

/// Where `result` of `operand` goes when it is no part of that. What becomes of
/// a gradient is kept to the end of the step, for those who save gradients.
FailureOr<Place> Lowering::placeOfPart(Value operand, Value result) {
  if (gradientOf(operand).empty())
    return placement.of(result);
  auto type = tensorType(result);
  return placement.persistent("reduced gradient", BufferKind::gradients,
                              type.getShape(), type.getElementType());
}

Lowering::Bucket Lowering::bucketOf(mesh::CollectiveOpInterface op) {
  Bucket bucket{
      op, CollectiveKind::all_reduce, Reduction::sum, {}, {}, {}, {}, {}, 0,
      {}};
  auto reduction = [](mesh::Reduction kind) {
    return kind == mesh::Reduction::max ? Reduction::max : Reduction::sum;
  };
  int64_t dim = 0, toDim = 0;
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](mesh::AllReduceOp op) {
        bucket.reduction = reduction(op.getReduction());
      })
      .Case([&](mesh::AllGatherOp op) {
        bucket.kind = CollectiveKind::all_gather;
        dim = op.getDim();
      })
      .Case([&](mesh::ReduceScatterOp op) {
        bucket.kind = CollectiveKind::reduce_scatter;
        bucket.reduction = reduction(op.getReduction());
        dim = op.getDim();
      })
      .Case([&](mesh::AllToAllOp op) {
        bucket.kind = CollectiveKind::all_to_all;
        dim = op.getGatherDim();
        toDim = op.getSplitDim();
      })
      .Case([&](mesh::PermuteOp op) {
        bucket.kind = CollectiveKind::permute;
        bucket.sources = llvm::to_vector(op.getSources());
      });
  bucket.dims = {dim};
  bucket.toDims = {toDim};
  bucket.bytes = bytesOfType(op->getOperand(0).getType());
  return bucket;
}

LogicalResult Lowering::lowerCollective(mesh::CollectiveOpInterface op) {
  if (auto slice = dyn_cast<mesh::SliceOp>(*op))
    return lowerSlice(slice);
  FailureOr<Place> input = placement.of(op->getOperand(0));
  if (failed(input))
    return failure();
  FailureOr<Place> output = placeOfResult(op, *input);
  if (failed(output))
    return failure();
  placement.set(op->getResult(0), *output);
  noteReduced(op->getOperand(0), op->getResult(0));
  Bucket next = bucketOf(op);
  next.inputs = {Placement::view(builder, op.getLoc(), *input)};
  next.outputs = {Placement::view(builder, op.getLoc(), *output)};
  next.places = {{*input, *output}};
  bool fits = pending && pending->kind == next.kind &&
              pending->reduction == next.reduction &&
              pending->sources == next.sources &&
              pending->first.getAxes() == op.getAxes() &&
              pending->bytes + next.bytes <= bucketBytes &&
              isSameElement(*pending, next) && !conflict(*pending, next);
  if (!fits) {
    flush();
    pending = next;
    return success();
  }
  pending->inputs.append(next.inputs);
  pending->outputs.append(next.outputs);
  pending->places.append(next.places);
  pending->dims.append(next.dims);
  pending->toDims.append(next.toDims);
  pending->bytes += next.bytes;
  return success();
}

/// The parameter whose gradient `value` is, or is made of by collectives.
StringRef Lowering::gradientOf(Value value) {
  if (auto state = value.getDefiningOp<StateOp>();
      state && state.getKind() == StateKind::gradient)
    return state.getName();
  return reducedNames.lookup(value);
}

/// Follows a gradient from its state through the collectives that reduce it.
void Lowering::noteReduced(Value from, Value to) {
  StringRef name = gradientOf(from);
  if (name.empty())
    return;
  reducedNames[to] = name;
  reduced[name] = *placement.of(to);
}

bool Lowering::isSameElement(const Bucket &a, const Bucket &b) {
  return cast<MemRefType>(a.inputs[0].getType()).getElementType() ==
         cast<MemRefType>(b.inputs[0].getType()).getElementType();
}

/// Parts of one instruction run in any order, so none writes what another one
/// touches, as by a view of the other's result.
bool Lowering::conflict(const Bucket &a, const Bucket &b) {
  for (const auto &[from, to] : a.places)
    for (const auto &[nextFrom, nextTo] : b.places)
      if (mayShareBytes(to, nextFrom) || mayShareBytes(to, nextTo) ||
          mayShareBytes(from, nextTo))
        return true;
  return false;
}

/// The order of a sum in f32 is not promised where GPUs reduce it; that of bf16
/// is, unless the spec gives it up.
bool Lowering::mayReorder(const Bucket &bucket) const {
  bool sums = bucket.reduction == Reduction::sum &&
              (bucket.kind == CollectiveKind::all_reduce ||
               bucket.kind == CollectiveKind::reduce_scatter);
  return sums && sumsInAnyOrder &&
         cast<MemRefType>(bucket.inputs[0].getType()).getElementType().isBF16();
}

void Lowering::flush() {
  if (!pending)
    return;
  Bucket bucket = std::move(*pending);
  pending.reset();
  auto state = bucket.first->getOperand(0).getDefiningOp<StateOp>();
  bool makesLoss = state && state.getKind() == StateKind::loss;
  bool inUpdate =
      bucket.first->getParentOfType<func::FuncOp>().getName() == "update";
  PassKind pass = inUpdate                   ? PassKind::update
                  : isBackward(bucket.first) ? PassKind::backward
                                             : PassKind::forward;
  mesh::CauseAttr cause = bucket.first.getCause();
  StringRef source = makesLoss ? "loss" : stringifyCollectiveKind(bucket.kind);
  auto collective = CollectiveOp::create(
      builder, bucket.first.getLoc(), builder.getStringAttr(source), i64(0),
      i64(bucket.bytes),
      CollectiveKindAttr::get(builder.getContext(), bucket.kind),
      ReductionAttr::get(builder.getContext(), bucket.reduction),
      bucket.first.getAxes(), PassKindAttr::get(builder.getContext(), pass),
      cause, builder.getDenseI64ArrayAttr(bucket.dims),
      builder.getDenseI64ArrayAttr(bucket.toDims),
      builder.getDenseI64ArrayAttr(bucket.sources),
      /*channel=*/i64(0), /*last_only=*/UnitAttr(),
      makesLoss ? builder.getUnitAttr() : UnitAttr(),
      mayReorder(bucket) ? builder.getUnitAttr() : UnitAttr(), bucket.inputs,
      bucket.outputs);
  int64_t layer =
      cause.getUser().empty() ? cause.getLayer() : cause.getUserLayer();
  if (layer != mesh::CauseAttr::noLayer)
    setLayer(collective, layer);
}

} // namespace meshwork::schedule
