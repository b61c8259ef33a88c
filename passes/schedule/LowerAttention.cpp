// Attention and its gradient: heads as loops of their own.
#include "dialects/transformer/Facts.h"
#include "passes/schedule/LoweringKinds.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

/// Seed, step and first sample as one; then the first head, if there.
static SmallVector<Value> randomViews(ValueRange random, Lowering &to) {
  if (random.empty())
    return {};
  Place place = *to.placement.of(random[0]); // The three lie side by side.
  place.shape = {3};
  place.strides = {1};
  SmallVector<Value> views = {to.builder.view(random[0].getLoc(), place)};
  for (Value firstHead : random.drop_front(3))
    views.push_back(
        to.builder.view(firstHead.getLoc(), *to.placement.of(firstHead)));
  return views;
}

/// Where documents begin, or which rows these are: read as one run.
static Value runOf(Value numbers, Views &views) {
  return numbers
             ? views.read(numbers, rowsLayout(tensorType(numbers).getRank(), 0))
             : Value();
}

static LogicalResult emit(transformer::AttentionOp op, Lowering &to) {
  Layout heads = separateLayout(4), sums = separateLayout(3);
  Views views(to);
  Value q = views.read(op.getQ(), heads), k = views.read(op.getK(), heads),
        v = views.read(op.getV(), heads),
        documents = runOf(op.getDocuments(), views),
        positions = runOf(op.getPositions(), views),
        keys = runOf(op.getKeys(), views),
        out = views.write(op.getResult(), heads),
        lse = views.write(op.getLse(), sums);
  if (!views.areComplete())
    return failure();
  ProgramBuilder &builder = to.builder;
  schedule::AttentionOp::create(
      builder, op.getLoc(), builder.sourceOf(op), builder.i64(op.getFlops()),
      builder.i64(bytesOfValues(op)), op.getScaleAttr(), op.getCausalAttr(),
      op.getWindowAttr(), op.getDropoutRateAttr(),
      builder.getI32IntegerAttr(randomStream(op.getDropoutName())),
      op.getTotalHeadsAttr(), op.getTotalKeysAttr(), q, k, v, documents,
      positions, keys, randomViews(op.getRandom(), to), out, lse);
  return success();
}

static LogicalResult emit(transformer::AttentionGradOp op, Lowering &to) {
  Layout heads = separateLayout(4), sums = separateLayout(3);
  Views views(to);
  Value q = views.read(op.getQ(), heads), k = views.read(op.getK(), heads),
        v = views.read(op.getV(), heads),
        out = views.read(op.getResult(), heads),
        lse = views.read(op.getLse(), sums),
        dout = views.read(op.getGradient(), heads),
        documents = runOf(op.getDocuments(), views),
        positions = runOf(op.getPositions(), views),
        keys = runOf(op.getKeys(), views), dq = views.write(op.getDq(), heads),
        dk = views.write(op.getDk(), heads),
        dv = views.write(op.getDv(), heads);
  if (!views.areComplete())
    return failure();
  ProgramBuilder &builder = to.builder;
  schedule::AttentionGradOp::create(
      builder, op.getLoc(), builder.sourceOf(op), builder.i64(op.getFlops()),
      builder.i64(bytesOfValues(op)), op.getScaleAttr(), op.getCausalAttr(),
      op.getWindowAttr(), op.getDropoutRateAttr(),
      builder.getI32IntegerAttr(randomStream(op.getDropoutName())),
      op.getTotalHeadsAttr(), op.getTotalKeysAttr(), op.getDuplicatedAttr(), q,
      k, v, out, lse, dout, documents, positions, keys,
      randomViews(op.getRandom(), to), dq, dk, dv);
  return success();
}

void attachAttention(MLIRContext *context) {
  attach<Computing, transformer::AttentionOp, transformer::AttentionGradOp>(
      context);
}

} // namespace meshwork::schedule
