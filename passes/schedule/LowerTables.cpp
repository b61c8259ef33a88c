// Tables of rows: embeddings, their gradients, and rotary positions; and the
// numbers of a row's largest elements.
#include "passes/schedule/LoweringKinds.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

/// Ids are one dense run, and rows lie at one stride: those of the table, and
/// one for each id.
static LogicalResult emit(transformer::EmbeddingOp op, Lowering &to) {
  int64_t idDims = tensorType(op.getIds()).getRank(),
          rank = tensorType(op.getResult()).getRank();
  Views views(to);
  Value table = views.read(op.getTable(), rowsLayout(rank - idDims + 1, 1)),
        ids = views.read(op.getIds(), rowsLayout(idDims, 0)),
        out = views.write(op.getResult(), rowsLayout(rank, idDims)),
        firstRow = views.of(op.getFirstRow());
  if (!views.areComplete())
    return failure();
  ProgramBuilder &builder = to.builder;
  schedule::EmbeddingOp::create(
      builder, op.getLoc(), builder.sourceOf(op), builder.i64(op.getFlops()),
      builder.i64(2 * bytesOfType(op.getType())), table, ids, firstRow, out);
  return success();
}

static LogicalResult emit(transformer::EmbeddingGradOp op, Lowering &to) {
  int64_t idDims = tensorType(op.getIds()).getRank(),
          rank = tensorType(op.getGradient()).getRank();
  Views views(to);
  Value ids = views.read(op.getIds(), rowsLayout(idDims, 0)),
        gradient = views.read(op.getGradient(), rowsLayout(rank, idDims));
  if (!views.areComplete())
    return failure();
  FailureOr<Destination> destination = to.sums.destinationOf(op.getResult());
  if (failed(destination))
    return failure();
  Layout rows = rowsLayout(rank - idDims + 1, 1);
  ProgramBuilder &builder = to.builder;
  Value table = builder.view(
      op.getLoc(), to.copies.writable(*destination, rows, op.getLoc()));
  Value firstRow = views.of(op.getFirstRow());
  schedule::EmbeddingGradOp::create(
      builder, op.getLoc(), builder.sourceOf(op), builder.i64(op.getFlops()),
      builder.i64(3 * bytesOfType(op.getGradient().getType())),
      AccumulateAttr::get(builder.getContext(), destination->accumulate), ids,
      gradient, firstRow, table);
  return success();
}

static LogicalResult emit(transformer::RotaryTableOp op, Lowering &to) {
  ProgramBuilder &builder = to.builder;
  OpBuilder::InsertionGuard guard(builder);
  builder.toEndOf(builder.once);
  SmallVector<Value> tables;
  constexpr StringRef names[] = {"rotary cosine", "rotary sine"};
  for (auto [result, name] : llvm::zip_equal(op->getResults(), names)) {
    RankedTensorType type = tensorType(result);
    Place place = to.placement.buffers.persistent(
        name, BufferKind::constants, type.getShape(), type.getElementType());
    to.placement.set(result, place);
    tables.push_back(builder.view(op.getLoc(), place));
  }
  Value positions = Views(to).of(op.getPositions());
  schedule::RotaryTableOp::create(
      builder, op.getLoc(), builder.sourceOf(op), builder.i64(op.getFlops()),
      builder.i64(bytesOfValues(op)), op.getInverseFrequenciesAttr(),
      op.getScaleAttr(), positions, tables[0], tables[1]);
  return success();
}

static LogicalResult emit(transformer::TopKOp op, Lowering &to) {
  int64_t rowDims = tensorType(op.getScores()).getRank() - 1;
  Layout rows = rowsLayout(rowDims + 1, rowDims);
  Views views(to);
  Value scores = views.read(op.getScores(), rows),
        valid = views.read(op.getValid(), flatLayout(rowDims)),
        choices = views.write(op.getChoices(), rows);
  if (!views.areComplete())
    return failure();
  ProgramBuilder &builder = to.builder;
  auto score = static_cast<GroupScore>(op.getGroupScore());
  schedule::TopKOp::create(
      builder, op.getLoc(), builder.sourceOf(op), builder.i64(op.getFlops()),
      builder.i64(bytesOfValues(op)), op.getGroupsAttr(),
      op.getKeptGroupsAttr(), GroupScoreAttr::get(builder.getContext(), score),
      scores, valid, choices);
  return success();
}

void attachTables(MLIRContext *context) {
  attach<Computing, transformer::EmbeddingOp, transformer::EmbeddingGradOp,
         transformer::RotaryTableOp, transformer::TopKOp>(context);
}

} // namespace meshwork::schedule
