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

/// Views of a part, but for dropout's: each is read as one run. Ranks share
/// nothing any more.
static AttentionPart read(AttentionPart part, Views &views) {
  for (Value *run : {&part.documents, &part.positions, &part.keys})
    if (*run)
      *run = views.read(*run, rowsLayout(tensorType(*run).getRank(), 0));
  part.terms = part.terms.with({.sharing = Sharing::none});
  return part;
}

static LogicalResult emit(transformer::AttentionOp op, Lowering &to) {
  Layout heads = separateLayout(4), sums = separateLayout(3);
  Views views(to);
  Value q = views.read(op.getQ(), heads), k = views.read(op.getK(), heads),
        v = views.read(op.getV(), heads);
  AttentionPart part = read(op.getPart(), views);
  Value out = views.write(op.getResult(), heads),
        lse = views.write(op.getLse(), sums);
  if (!views.areComplete())
    return failure();
  ProgramBuilder &builder = to.builder;
  schedule::AttentionOp::create(
      builder, op.getLoc(), builder.sourceOf(op), builder.i64(op.getFlops()),
      builder.i64(bytesOfValues(op)), part.terms, q, k, v, part.documents,
      part.positions, part.keys, randomViews(part.random, to), out, lse);
  return success();
}

static LogicalResult emit(transformer::AttentionGradOp op, Lowering &to) {
  Layout heads = separateLayout(4), sums = separateLayout(3);
  Views views(to);
  Value q = views.read(op.getQ(), heads), k = views.read(op.getK(), heads),
        v = views.read(op.getV(), heads),
        out = views.read(op.getResult(), heads),
        lse = views.read(op.getLse(), sums),
        dout = views.read(op.getGradient(), heads);
  AttentionPart part = read(op.getPart(), views);
  Value dq = views.write(op.getDq(), heads),
        dk = views.write(op.getDk(), heads),
        dv = views.write(op.getDv(), heads);
  if (!views.areComplete())
    return failure();
  ProgramBuilder &builder = to.builder;
  schedule::AttentionGradOp::create(
      builder, op.getLoc(), builder.sourceOf(op), builder.i64(op.getFlops()),
      builder.i64(bytesOfValues(op)), part.terms, op.getDuplicatedAttr(), q, k,
      v, out, lse, dout, part.documents, part.positions, part.keys,
      randomViews(part.random, to), dq, dk, dv);
  return success();
}

void attachAttention(MLIRContext *context) {
  attach<Computing, transformer::AttentionOp, transformer::AttentionGradOp>(
      context);
}

} // namespace meshwork::schedule
