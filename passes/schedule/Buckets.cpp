// Collectives to instructions, in buckets.
#include "passes/schedule/Buckets.h"
#include "dialects/mesh/Chunk.h"
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/StepFunctions.h"
#include "passes/schedule/LoweringModels.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

bool readsState(Operation *op) {
  return isa_and_nonnull<StateOp>(op->getOperand(0).getDefiningOp());
}

/// Where the result of a collective goes.
FailureOr<Place> Buckets::placeOfResult(mesh::CollectiveOpInterface op,
                                        const Place &input) {
  Value operand = op->getOperand(0), result = op->getResult(0);
  bool isState = readsState(op);
  Operation *maker = operand.getDefiningOp();
  bool isLast = operand.hasOneUse() && maker &&
                stateUseOf(maker) != StateUse::reads && !isViewOfOperand(maker);
  bool isPart = llvm::any_of(result.getUsers(), llvm::IsaPred<UnsliceOp>);
  mesh::Movement movement = op.getMovement();
  if (movement.kind == mesh::CollectiveKind::all_reduce && !isPart &&
      (isState || isLast))
    return input;
  if (movement.kind == mesh::CollectiveKind::reduce_scatter && isState) {
    int64_t dim = movement.dim, size = tensorType(result).getDimSize(dim);
    if (tensorType(operand).getDimSize(dim) ==
        size * placement.groupSize(op.getAxes()))
      return blockOf(input, dim, size, op.getAxes());
  }
  return gradients.placeOf(operand, result);
}

Buckets::Bucket Buckets::bucketOf(mesh::CollectiveOpInterface op) {
  mesh::Movement movement = op.getMovement();
  // Enums of both dialects are made of the plan's.
  Bucket bucket{.first = op,
                .kind = static_cast<CollectiveKind>(*movement.kind),
                .reduction = static_cast<Reduction>(movement.reduction),
                .sources = llvm::to_vector(movement.sources),
                .dims = {movement.dim},
                .toDims = {movement.toDim}};
  bucket.bytes = bytesOfType(op->getOperand(0).getType());
  return bucket;
}

LogicalResult Buckets::add(mesh::CollectiveOpInterface op) {
  FailureOr<Place> input = placement.of(op->getOperand(0));
  if (failed(input))
    return failure();
  FailureOr<Place> output = placeOfResult(op, *input);
  if (failed(output))
    return failure();
  gradients.put(op->getOperand(0), op->getResult(0), *output);
  Bucket next = bucketOf(op);
  next.inputs = {builder.view(op.getLoc(), *input)};
  next.outputs = {builder.view(op.getLoc(), *output)};
  next.places = {{*input, *output}};
  if (!fits(next)) {
    flush();
    pending = next;
    if (mesh::isChunk(op))
      flush();
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

static Type elementOf(ArrayRef<Value> views) {
  return cast<MemRefType>(views.front().getType()).getElementType();
}

bool Buckets::fits(const Bucket &next) const {
  if (!pending)
    return false;
  const Bucket &last = *pending;
  mesh::CollectiveOpInterface a = last.first, b = next.first;
  return !mesh::isChunk(b) && last.kind == next.kind &&
         last.reduction == next.reduction && last.sources == next.sources &&
         a.getAxes() == b.getAxes() && last.bytes + next.bytes <= mostBytes &&
         elementOf(last.inputs) == elementOf(next.inputs) &&
         !conflict(last, next);
}

/// Parts of one instruction run in any order, so none writes what another one
/// touches, as by a view of the other's result.
bool Buckets::conflict(const Bucket &a, const Bucket &b) {
  for (const auto &[from, to] : a.places)
    for (const auto &[nextFrom, nextTo] : b.places)
      if (mayShareBytes(to, nextFrom) || mayShareBytes(to, nextTo) ||
          mayShareBytes(from, nextTo))
        return true;
  return false;
}

/// The order of a sum in f32 is not promised where GPUs reduce it; that of bf16
/// is, unless the spec gives it up.
bool Buckets::mayReorder(const Bucket &bucket) const {
  bool sums = bucket.reduction == Reduction::sum &&
              (bucket.kind == CollectiveKind::all_reduce ||
               bucket.kind == CollectiveKind::reduce_scatter);
  return sums && sumsInAnyOrder && elementOf(bucket.inputs).isBF16();
}

static PassKind passOfCollective(mesh::CollectiveOpInterface op) {
  if (roleOf(op) == StepFunction::update)
    return PassKind::update;
  return isBackward(op) ? PassKind::backward : PassKind::forward;
}

void Buckets::flush() {
  if (!pending)
    return;
  Bucket bucket = std::move(*pending);
  pending.reset();
  auto state = bucket.first->getOperand(0).getDefiningOp<StateOp>();
  // A metric is known with the loss, before anything is updated.
  bool isMetric = state && state.getKind() == StateKind::metric,
       makesLoss = isMetric || (state && state.getKind() == StateKind::loss);
  mesh::CauseAttr cause = bucket.first.getCause();
  StringRef source = isMetric    ? state.getName()
                     : makesLoss ? StringRef("loss")
                                 : stringifyCollectiveKind(bucket.kind);
  MLIRContext *context = builder.getContext();
  auto collective = CollectiveOp::create(
      builder, bucket.first.getLoc(), builder.getStringAttr(source),
      builder.i64(0), builder.i64(bucket.bytes),
      CollectiveKindAttr::get(context, bucket.kind),
      ReductionAttr::get(context, bucket.reduction), bucket.first.getAxes(),
      PassKindAttr::get(context, passOfCollective(bucket.first)), cause,
      builder.getDenseI64ArrayAttr(bucket.dims),
      builder.getDenseI64ArrayAttr(bucket.toDims),
      builder.getDenseI64ArrayAttr(bucket.sources),
      /*channel=*/builder.i64(0), /*last_only=*/UnitAttr(),
      makesLoss ? builder.getUnitAttr() : UnitAttr(),
      mayReorder(bucket) ? builder.getUnitAttr() : UnitAttr(), bucket.inputs,
      bucket.outputs);
  int64_t layer =
      cause.getUser().empty() ? cause.getLayer() : cause.getUserLayer();
  if (layer != mesh::CauseAttr::noLayer)
    setLayer(collective, layer);
}

} // namespace meshwork::schedule
