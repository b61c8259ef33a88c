// Attention, forward: for each block of queries, one pass over the blocks of
// keys it sees, with a running maximum and sum per row (README.md).
#include <cmath>
#include <limits>

#include "runtime/device/cpu/AttentionShape.h"

namespace meshwork::runtime::cpu {
namespace {

struct ForwardOperands {
  HeadTensor q, k, v, out;
  RowTensor lse;
};

/// What one thread holds of one block of queries.
struct ForwardScratch {
  BlockScratch blocks;
  std::byte *q, *k, *v; // copies, where products take such
  float *scores, *sums, *rowMax, *rowSum;
  Bf16 *probabilities; // of products in f32 they replace the scores
  std::byte *gemm;
};

class AttentionOperation final : public Operation {
public:
  AttentionOperation(AttentionShape shape, ForwardOperands ops)
      : shape(std::move(shape)), ops(std::move(ops)) {}

  absl::Status describe();
  uint64_t workspaceBytes() const override;
  absl::Status bind(const PrepareContext &context) override;
  void run(const StepState &) override;

private:
  ForwardScratch carve(Carver &carver) const;
  void attend(int64_t sample, int64_t head, int64_t queryBlock, int thread);
  void addKeys(const QueryBlock &queries, const std::byte *q,
               const SoftmaxState &state, const ForwardScratch &scratch,
               int64_t head, int64_t keyBlock, int thread);
  void finish(const QueryBlock &queries, const ForwardScratch &scratch,
              int64_t head);

  AttentionShape shape;
  ForwardOperands ops;
  GemmGrid scoreGemms, valueGemms;
  const AttentionKernels &kernels = attentionKernels();
};

absl::Status AttentionOperation::describe() {
  MESHWORK_RETURN_IF_ERROR(scoreGemms.describe(
      shape.queries, shape.keys, [&](int64_t rows, int64_t columns) {
        return scoreSpec(shape, ops.q, ops.k, rows, columns);
      }));
  return valueGemms.describe(
      shape.queries, shape.keys, [&](int64_t rows, int64_t columns) {
        return blockTimesSpec(shape, shape.ldOfKeys(ops.v), shape.d, rows,
                              columns, false);
      });
}

ForwardScratch AttentionOperation::carve(Carver &carver) const {
  int64_t rows = shape.queries.block, area = rows * shape.keys.block;
  ForwardScratch scratch;
  scratch.blocks = shape.carve(carver);
  scratch.q = shape.takeQueries(carver);
  scratch.k = shape.takeKeys(carver);
  scratch.v = shape.takeKeys(carver);
  scratch.scores = carver.take<float>(area);
  scratch.sums = carver.take<float>(rows * shape.d);
  scratch.rowMax = carver.take<float>(rows);
  scratch.rowSum = carver.take<float>(rows);
  scratch.probabilities =
      shape.productsInF32() ? nullptr : carver.take<Bf16>(area);
  scratch.gemm = carver.take<std::byte>(static_cast<int64_t>(
      std::max(scoreGemms.scratchBytes(), valueGemms.scratchBytes())));
  return scratch;
}

uint64_t AttentionOperation::workspaceBytes() const {
  Carver carver(nullptr);
  (void)carve(carver);
  return carver.used();
}

absl::Status AttentionOperation::bind(const PrepareContext &context) {
  MESHWORK_RETURN_IF_ERROR(Operation::bind(context));
  MESHWORK_RETURN_IF_ERROR(scoreGemms.generate(team->size()));
  return valueGemms.generate(team->size());
}

void AttentionOperation::run(const StepState &) {
  int64_t blocks = shape.queries.count();
  int64_t items = shape.batch * shape.heads * blocks;
  team->parallelFor(items, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t item = begin; item < end; ++item) {
      int64_t pair = item / blocks, turn = item % blocks;
      // With a causal mask later queries see more keys: taken from both ends
      // in turn, any contiguous share of the blocks is near the average.
      int64_t block = turn % 2 ? blocks - 1 - turn / 2 : turn / 2;
      attend(pair / shape.heads, pair % shape.heads, block, thread);
    }
  });
}

void AttentionOperation::attend(int64_t sample, int64_t head,
                                int64_t queryBlock, int thread) {
  Carver carver(workspaceOf(thread));
  ForwardScratch scratch = carve(carver);
  SoftmaxState state{scratch.rowMax, scratch.rowSum, scratch.sums, shape.d};
  std::fill(state.max, state.max + shape.queries.block,
            -std::numeric_limits<float>::infinity());
  std::fill(state.sum, state.sum + shape.queries.block, 0.0f);
  std::fill(state.out, state.out + shape.queries.block * shape.d, 0.0f);
  QueryBlock queries =
      shape.queryBlock(arena, sample, queryBlock, scratch.blocks.queries);
  const std::byte *q = shape.queryRows(arena, ops.q, queries, head, scratch.q);
  for (int64_t keyBlock = queries.keyBlocks.first;
       keyBlock < queries.keyBlocks.end; ++keyBlock)
    if (shape.sees(queries, keyBlock))
      addKeys(queries, q, state, scratch, head, keyBlock, thread);
  finish(queries, scratch, head);
}

void AttentionOperation::addKeys(const QueryBlock &queries, const std::byte *q,
                                 const SoftmaxState &state,
                                 const ForwardScratch &scratch, int64_t head,
                                 int64_t keyBlock, int thread) {
  int64_t kvHead = head / shape.groupSize();
  bool inF32 = shape.productsInF32();
  ScoreBlock block =
      shape.scoreBlock(arena, head, queries, keyBlock, scratch.blocks);
  block.scores = scratch.scores;
  block.probabilities =
      inF32 ? scratch.scores : static_cast<void *>(scratch.probabilities);
  scoreGemms.at(block.rows, block.columns)
      .run(thread, q,
           shape.keyColumns(arena, ops.k, queries, kvHead, keyBlock, scratch.k),
           reinterpret_cast<std::byte *>(scratch.scores), nullptr,
           scratch.gemm);
  (inF32 ? kernels.softmaxF32 : kernels.softmaxBf16)(block, state);
  valueGemms.at(block.rows, block.columns)
      .run(thread, static_cast<const std::byte *>(block.probabilities),
           shape.keyRows(arena, ops.v, queries, kvHead, keyBlock, scratch.v),
           reinterpret_cast<std::byte *>(scratch.sums), nullptr, scratch.gemm);
}

void AttentionOperation::finish(const QueryBlock &queries,
                                const ForwardScratch &scratch, int64_t head) {
  float *lse = ops.lse.at(arena, queries.sample, head, queries.first);
  for (int64_t row = 0; row < queries.rows; ++row) {
    float sum = scratch.rowSum[row]; // zero of a row that sees nothing
    lse[row] = scratch.rowMax[row] + std::log(sum);
    scratch.rowSum[row] = sum == 0 ? 0 : 1.0f / sum;
  }
  auto *round = ops.out.tensor.dtype == DType::bf16 ? kernels.roundBf16
                                                    : kernels.roundF32;
  round(scratch.sums, shape.d, scratch.rowSum, queries.rows, shape.d,
        ops.out.at(arena, queries.sample, queries.first, head), ops.out.ld());
}

} // namespace

OperationOr make(const plan::Attention &op, const ProgramOnRank &program) {
  AttentionShape shape;
  MESHWORK_ASSIGN_OR_RETURN(
      shape, attentionShapeOf(program, op.q(), op.k(),
                              {op.scale(), op.causal(), op.window(),
                               op.dropout(), op.documents(), op.positions(),
                               op.key_positions(), op.total_keys()}));
  ForwardOperands ops;
  MESHWORK_ASSIGN_OR_RETURN(ops.q, queryTensorOf(program, op.q(), shape, "q"));
  MESHWORK_ASSIGN_OR_RETURN(ops.k, keyTensorOf(program, op.k(), shape, "k"));
  MESHWORK_ASSIGN_OR_RETURN(ops.v, keyTensorOf(program, op.v(), shape, "v"));
  MESHWORK_ASSIGN_OR_RETURN(
      ops.out, queryTensorOf(program, op.out(), shape, "out", Role::result));
  MESHWORK_ASSIGN_OR_RETURN(ops.lse, rowTensorOf(program, op.lse(), shape));
  auto attention =
      std::make_unique<AttentionOperation>(std::move(shape), std::move(ops));
  MESHWORK_RETURN_IF_ERROR(attention->describe());
  return attention;
}

} // namespace meshwork::runtime::cpu
