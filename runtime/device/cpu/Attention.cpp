// Attention, forward: for a few blocks of queries at once, one pass over the
// blocks of keys they see, with a running maximum and sum per row (README.md).
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "runtime/device/cpu/AttentionShape.h"

namespace meshwork::runtime::cpu {
namespace {

struct ForwardOperands {
  HeadTensor q, k, v, out;
  RowTensor lse;
};

/// A block of queries on its way through the keys that it sees.
struct ForwardQueries {
  QueryBlock block;
  const std::byte *q;
  QueryRow *rows;
  std::byte *copy; // of q, where products take such
  SoftmaxState state;
};

/// A block of k and of v, as products take them.
struct ForwardKeys {
  const std::byte *k, *v;
  FetchAhead next[2]; // k and v of the next block; no rows after the last
};

/// What one thread holds.
struct ForwardScratch {
  ForwardQueries queries[maxBlocksTogether];
  int32_t *keyNumbers;
  std::byte *k, *v;             // copies, where products take such
  std::byte *packedK, *packedV; // likewise
  float *scores;
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
  int64_t blocksOfItem() const;
  void attend(int64_t sample, int64_t head, BlockRange queryBlocks, int thread);
  void start(ForwardQueries &queries, int64_t sample, int64_t head,
             int64_t queryBlock) const;
  ForwardKeys keysOf(const QueryBlock &queries, const ForwardScratch &scratch,
                     int64_t kvHead, BlockRange left, int thread);
  void addKeys(const ForwardQueries &queries, const ForwardKeys &keys,
               const ForwardScratch &scratch, int64_t head, int64_t keyBlock,
               int thread);
  void finish(const ForwardQueries &queries, int64_t head) const;

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
        return blockTimesSpec(shape, shape.ldOfKeys(ops.v), rows, columns,
                              false);
      });
}

ForwardScratch AttentionOperation::carve(Carver &carver) const {
  int64_t rows = shape.queries.block, area = rows * shape.keys.block;
  ForwardScratch scratch{};
  for (ForwardQueries &queries :
       std::span(scratch.queries, shape.blocksTogether())) {
    queries.rows = carver.take<QueryRow>(rows);
    queries.copy = shape.takeQueries(carver);
    queries.state = {carver.take<float>(rows), carver.take<float>(rows),
                     carver.take<float>(rows * shape.paddedD()),
                     shape.paddedD()};
  }
  scratch.keyNumbers = shape.takeKeyNumbers(carver);
  scratch.k = shape.takeKeys(carver);
  scratch.v = shape.takeKeys(carver);
  scratch.packedK = scoreGemms.takePacked(carver);
  scratch.packedV = valueGemms.takePacked(carver);
  scratch.scores = carver.take<float>(area);
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

/// Fewer than could be together where threads would be left without work. A
/// block's bits do not depend on the others.
int64_t AttentionOperation::blocksOfItem() const {
  constexpr int64_t itemsPerThread = 4;
  int64_t blocks = shape.batch * shape.heads * shape.queries.count();
  return std::clamp<int64_t>(blocks / (itemsPerThread * team->size()), 1,
                             shape.blocksTogether());
}

void AttentionOperation::run(const StepState &) {
  Cut blocks{shape.queries.count(), blocksOfItem()};
  int64_t items = blocks.count();
  team->parallelFor(shape.batch * shape.heads * items,
                    [&](int64_t begin, int64_t end, int thread) {
                      for (int64_t i = begin; i < end; ++i) {
                        int64_t pair = i / items, turn = i % items;
                        // With a causal mask later queries see more keys: taken
                        // from both ends in turn, any contiguous share of them
                        // is near the average.
                        int64_t item =
                            turn % 2 ? items - 1 - turn / 2 : turn / 2;
                        int64_t first = item * blocks.block;
                        attend(pair / shape.heads, pair % shape.heads,
                               {first, first + blocks.lengthAt(item)}, thread);
                      }
                    });
}

void AttentionOperation::attend(int64_t sample, int64_t head,
                                BlockRange queryBlocks, int thread) {
  Carver carver(workspaceOf(thread));
  ForwardScratch scratch = carve(carver);
  std::span together(scratch.queries, queryBlocks.end - queryBlocks.first);
  BlockRange seen = noBlocks;
  for (ForwardQueries &queries : together) {
    start(queries, sample, head, queryBlocks.first++);
    seen = covering(seen, queries.block.keyBlocks);
  }
  int64_t kvHead = head / shape.groupSize();
  for (BlockRange left = seen; left.first < left.end; ++left.first) {
    ForwardKeys keys{};
    for (const ForwardQueries &queries : together) {
      if (!shape.sees(queries.block, left.first))
        continue;
      if (!keys.k)
        keys = keysOf(queries.block, scratch, kvHead, left, thread);
      addKeys(queries, keys, scratch, head, left.first, thread);
    }
  }
  for (const ForwardQueries &queries : together)
    finish(queries, head);
}

void AttentionOperation::start(ForwardQueries &queries, int64_t sample,
                               int64_t head, int64_t queryBlock) const {
  const SoftmaxState &state = queries.state;
  int64_t rows = shape.queries.block;
  std::fill_n(state.max, rows, -std::numeric_limits<float>::infinity());
  std::fill_n(state.sum, rows, 0.0f);
  std::fill_n(state.out, rows * state.d, 0.0f);
  queries.block = shape.queryBlock(arena, sample, queryBlock, queries.rows);
  queries.q = shape.queryRows(arena, ops.q, queries.block, head, queries.copy);
}

/// Of the first block that is left.
ForwardKeys AttentionOperation::keysOf(const QueryBlock &queries,
                                       const ForwardScratch &scratch,
                                       int64_t kvHead, BlockRange left,
                                       int thread) {
  auto packed = [&](GemmGrid &grid, const std::byte *rhs, std::byte *to) {
    return grid.packed(queries.rows, shape.keys.lengthAt(left.first), thread,
                       rhs, to, scratch.gemm);
  };
  ForwardKeys keys{packed(scoreGemms,
                          shape.keyColumns(arena, ops.k, queries, kvHead,
                                           left.first, scratch.k),
                          scratch.packedK),
                   packed(valueGemms,
                          shape.keyRows(arena, ops.v, queries, kvHead,
                                        left.first, scratch.v),
                          scratch.packedV),
                   {}};
  if (++left.first < left.end)
    for (auto [next, of] :
         {std::pair{&keys.next[0], &ops.k}, {&keys.next[1], &ops.v}})
      *next = shape.keysAhead(arena, *of, queries.sample, kvHead, left.first,
                              blocksOfItem());
  return keys;
}

void AttentionOperation::addKeys(const ForwardQueries &queries,
                                 const ForwardKeys &keys,
                                 const ForwardScratch &scratch, int64_t head,
                                 int64_t keyBlock, int thread) {
  bool inF32 = shape.productsInF32();
  ScoreBlock block = shape.scoreBlock(arena, head, queries.block, keyBlock,
                                      scratch.keyNumbers);
  block.scores = scratch.scores;
  block.probabilities =
      inF32 ? scratch.scores : static_cast<void *>(scratch.probabilities);
  block.fetch(keys.next, &queries - scratch.queries);
  scoreGemms.at(block.rows, block.columns)
      .run(thread, queries.q, keys.k,
           reinterpret_cast<std::byte *>(scratch.scores), nullptr,
           scratch.gemm);
  (inF32 ? kernels.softmaxF32 : kernels.softmaxBf16)(block, queries.state);
  valueGemms.at(block.rows, block.columns)
      .run(thread, static_cast<const std::byte *>(block.probabilities), keys.v,
           reinterpret_cast<std::byte *>(queries.state.out), nullptr,
           scratch.gemm);
}

void AttentionOperation::finish(const ForwardQueries &queries,
                                int64_t head) const {
  const SoftmaxState &state = queries.state;
  const QueryBlock &block = queries.block;
  float *lse = ops.lse.at(arena, block.sample, head, block.first);
  for (int64_t row = 0; row < block.rows; ++row) {
    float sum = state.sum[row]; // zero of a row that sees nothing
    lse[row] = state.max[row] + std::log(sum);
    state.sum[row] = sum == 0 ? 0 : 1.0f / sum;
  }
  auto *round = ops.out.tensor.dtype == DType::bf16 ? kernels.roundBf16
                                                    : kernels.roundF32;
  round(state.out, state.d, state.sum, block.rows, shape.d,
        ops.out.at(arena, block.sample, block.first, head), ops.out.ld());
}

} // namespace

OperationOr make(const plan::Attention &op, const ProgramOnRank &program) {
  AttentionShape shape;
  MESHWORK_ASSIGN_OR_RETURN(
      shape, attentionShapeOf(program, op.q(), op.k(), *op.part()));
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
