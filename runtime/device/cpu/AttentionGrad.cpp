// Attention, backward: probabilities are computed again from lse, block by
// block. A task is one sample and key head: it walks the query heads of that
// key head in order, so that dk and dv sum in one fixed order and no two
// threads write the same row.
#include <cstring>

#include "runtime/device/cpu/AttentionShape.h"

namespace meshwork::runtime::cpu {
namespace {

struct GradOperands {
  HeadTensor q, k, v, out, dout, dq, dk, dv;
  RowTensor lse;
};

struct GradScratch {
  BlockScratch blocks;
  float *scores, *dprob, *dq, *delta;
  Bf16 *probabilities, *dscores; // bf16 only
  float *dk, *dv; // f32 sums of the task, [sequence, d], where results are bf16
  std::byte *gemm;
};

/// Where the f32 sums of dk and dv are: the results themselves, or scratch.
struct Sums {
  std::byte *dk, *dv;
  int64_t dkLd, dvLd; // elements
};

class AttentionGradOperation final : public Operation {
public:
  AttentionGradOperation(AttentionShape shape, GradOperands ops)
      : shape(std::move(shape)), ops(std::move(ops)) {}

  absl::Status describe();
  uint64_t workspaceBytes() const override;
  absl::Status bind(const PrepareContext &context) override;
  void run(const StepState &) override;

private:
  bool isBf16() const { return shape.dtype == DType::bf16; }
  /// Results in f32 are their own sums.
  static bool inScratch(const HeadTensor &result) {
    return result.tensor.dtype != DType::f32;
  }
  int64_t ldOfSums(const HeadTensor &result) const {
    return inScratch(result) ? shape.d : result.ld();
  }
  GradScratch carve(Carver &carver) const;
  Sums sumsOf(const GradScratch &scratch, int64_t sample, int64_t kvHead) const;
  void runTask(int64_t sample, int64_t kvHead, int thread);
  void runQueries(const GradScratch &scratch, const Sums &sums, int64_t sample,
                  int64_t head, int64_t queryBlock, int thread);
  void runBlock(const QueryBlock &queries, const GradScratch &scratch,
                const Sums &sums, int64_t head, int64_t keyBlock, int thread);
  void clear(const Sums &sums) const;
  void roundSums(const HeadTensor &to, const std::byte *sums, int64_t sample,
                 int64_t kvHead) const;

  AttentionShape shape;
  GradOperands ops;
  GemmGrid scores, dprob, dq, dk, dv;
  const AttentionKernels &kernels = attentionKernels();
};

absl::Status AttentionGradOperation::describe() {
  auto products = [&](GemmGrid &grid, auto specOf) {
    return grid.describe(shape.queries, shape.keys, specOf);
  };
  MESHWORK_RETURN_IF_ERROR(products(scores, [&](int64_t rows, int64_t columns) {
    return scoreSpec(shape, ops.q, ops.k, rows, columns);
  }));
  MESHWORK_RETURN_IF_ERROR(products(dprob, [&](int64_t rows, int64_t columns) {
    return scoreSpec(shape, ops.dout, ops.v, rows, columns);
  }));
  MESHWORK_RETURN_IF_ERROR(products(dq, [&](int64_t rows, int64_t columns) {
    return blockTimesSpec(shape, shape.ldOfKeys(ops.k), shape.d, rows, columns,
                          false);
  }));
  MESHWORK_RETURN_IF_ERROR(products(dk, [&](int64_t rows, int64_t columns) {
    return blockTimesSpec(shape, ops.q.ld(), ldOfSums(ops.dk), rows, columns,
                          true);
  }));
  return products(dv, [&](int64_t rows, int64_t columns) {
    return blockTimesSpec(shape, ops.dout.ld(), ldOfSums(ops.dv), rows, columns,
                          true);
  });
}

GradScratch AttentionGradOperation::carve(Carver &carver) const {
  int64_t rows = shape.queries.block, area = rows * shape.keys.block;
  GradScratch scratch{};
  scratch.blocks = shape.carve(carver);
  scratch.scores = carver.take<float>(area);
  scratch.dprob = carver.take<float>(area);
  scratch.dq = carver.take<float>(rows * shape.d);
  scratch.delta = carver.take<float>(rows);
  if (isBf16()) {
    scratch.probabilities = carver.take<Bf16>(area);
    scratch.dscores = carver.take<Bf16>(area);
  }
  if (inScratch(ops.dk))
    scratch.dk = carver.take<float>(shape.sequence * shape.d);
  if (inScratch(ops.dv))
    scratch.dv = carver.take<float>(shape.sequence * shape.d);
  uint64_t gemmBytes = 0;
  for (const GemmGrid *grid : {&scores, &dprob, &dq, &dk, &dv})
    gemmBytes = std::max(gemmBytes, grid->scratchBytes());
  scratch.gemm = carver.take<std::byte>(static_cast<int64_t>(gemmBytes));
  return scratch;
}

uint64_t AttentionGradOperation::workspaceBytes() const {
  Carver carver(nullptr);
  (void)carve(carver);
  return carver.used();
}

absl::Status AttentionGradOperation::bind(const PrepareContext &context) {
  MESHWORK_RETURN_IF_ERROR(Operation::bind(context));
  for (GemmGrid *grid : {&scores, &dprob, &dq, &dk, &dv})
    MESHWORK_RETURN_IF_ERROR(grid->generate(team->size()));
  return absl::OkStatus();
}

void AttentionGradOperation::run(const StepState &) {
  int64_t items = shape.batch * shape.kvHeads;
  team->parallelFor(items, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t item = begin; item < end; ++item)
      runTask(item / shape.kvHeads, item % shape.kvHeads, thread);
  });
}

Sums AttentionGradOperation::sumsOf(const GradScratch &scratch, int64_t sample,
                                    int64_t kvHead) const {
  auto at = [&](const HeadTensor &result, float *own) {
    return inScratch(result) ? reinterpret_cast<std::byte *>(own)
                             : result.at(arena, sample, 0, kvHead);
  };
  return {at(ops.dk, scratch.dk), at(ops.dv, scratch.dv), ldOfSums(ops.dk),
          ldOfSums(ops.dv)};
}

void AttentionGradOperation::clear(const Sums &sums) const {
  for (int64_t row = 0; row < shape.sequence; ++row) {
    std::memset(sums.dk + row * sums.dkLd * 4, 0, shape.d * 4);
    std::memset(sums.dv + row * sums.dvLd * 4, 0, shape.d * 4);
  }
}

void AttentionGradOperation::runTask(int64_t sample, int64_t kvHead,
                                     int thread) {
  Carver carver(workspaceOf(thread));
  GradScratch scratch = carve(carver);
  Sums sums = sumsOf(scratch, sample, kvHead);
  clear(sums);
  for (int64_t h = 0; h < shape.groupSize(); ++h)
    for (int64_t block = 0; block < shape.queries.count(); ++block)
      runQueries(scratch, sums, sample, kvHead * shape.groupSize() + h, block,
                 thread);
  roundSums(ops.dk, sums.dk, sample, kvHead);
  roundSums(ops.dv, sums.dv, sample, kvHead);
}

void AttentionGradOperation::runQueries(const GradScratch &scratch,
                                        const Sums &sums, int64_t sample,
                                        int64_t head, int64_t queryBlock,
                                        int thread) {
  QueryBlock queries =
      shape.queryBlock(arena, sample, queryBlock, scratch.blocks.queries);
  auto *rowDot = isBf16() ? kernels.rowDotBf16 : kernels.rowDotF32;
  rowDot(ops.dout.at(arena, sample, queries.first, head), ops.dout.ld(),
         ops.out.at(arena, sample, queries.first, head), ops.out.ld(),
         queries.rows, shape.d, scratch.delta);
  std::fill(scratch.dq, scratch.dq + queries.rows * shape.d, 0.0f);
  for (int64_t block = queries.keyBlocks.first; block < queries.keyBlocks.end;
       ++block)
    if (shape.sees(queries, block))
      runBlock(queries, scratch, sums, head, block, thread);
  auto *round = inScratch(ops.dq) ? kernels.roundBf16 : kernels.roundF32;
  round(scratch.dq, shape.d, nullptr, queries.rows, shape.d,
        ops.dq.at(arena, sample, queries.first, head), ops.dq.ld());
}

void AttentionGradOperation::runBlock(const QueryBlock &queries,
                                      const GradScratch &scratch,
                                      const Sums &sums, int64_t head,
                                      int64_t keyBlock, int thread) {
  GradBlock grad;
  grad.block = shape.scoreBlock(arena, head, queries, keyBlock, scratch.blocks);
  auto multiply = [&](GemmGrid &grid, const void *lhs, const std::byte *rhs,
                      void *dst) {
    grid.at(grad.block.rows, grad.block.columns)
        .run(thread, static_cast<const std::byte *>(lhs), rhs,
             static_cast<std::byte *>(dst), nullptr, scratch.gemm);
  };
  auto rowsOf = [&](const HeadTensor &of, std::byte *copy) {
    return shape.keyRows(arena, of, queries, head / shape.groupSize(), keyBlock,
                         copy);
  };
  const std::byte *q = ops.q.at(arena, queries.sample, queries.first, head);
  const std::byte *k = rowsOf(ops.k, scratch.blocks.k);
  const std::byte *dout =
      ops.dout.at(arena, queries.sample, queries.first, head);
  multiply(scores, q, k, scratch.scores);
  multiply(dprob, dout, rowsOf(ops.v, scratch.blocks.v), scratch.dprob);
  grad.lse = ops.lse.at(arena, queries.sample, head, queries.first);
  grad.delta = scratch.delta;
  grad.block.scores = scratch.scores;
  grad.dprob = scratch.dprob;
  grad.block.probabilities =
      isBf16() ? static_cast<void *>(scratch.probabilities) : scratch.scores;
  grad.dscores =
      isBf16() ? static_cast<void *>(scratch.dscores) : scratch.dprob;
  (isBf16() ? kernels.gradBf16 : kernels.gradF32)(grad);
  int64_t key = grad.block.firstKey * 4; // bytes of a column of f32
  multiply(dv, grad.block.probabilities, dout, sums.dv + key * sums.dvLd);
  multiply(dk, grad.dscores, q, sums.dk + key * sums.dkLd);
  multiply(dq, grad.dscores, k, scratch.dq);
}

void AttentionGradOperation::roundSums(const HeadTensor &to,
                                       const std::byte *sums, int64_t sample,
                                       int64_t kvHead) const {
  if (inScratch(to))
    kernels.roundBf16(reinterpret_cast<const float *>(sums), ldOfSums(to),
                      nullptr, shape.sequence, shape.d,
                      to.at(arena, sample, 0, kvHead), to.ld());
}

} // namespace

OperationOr make(const plan::AttentionGrad &op, const ProgramOnRank &program) {
  AttentionShape shape;
  MESHWORK_ASSIGN_OR_RETURN(
      shape, attentionShapeOf(program, op.q(), op.k(),
                              {op.scale(), op.causal(), op.window(),
                               op.dropout(), op.documents(), op.positions(),
                               op.key_positions(), op.total_keys()}));
  GradOperands ops;
  struct Wanted {
    HeadTensor &to;
    uint32_t view;
    const char *name;
    Role role = Role::operand;
  };
  for (const Wanted &wanted :
       {Wanted{ops.q, op.q(), "q"}, Wanted{ops.out, op.out(), "out"},
        Wanted{ops.dout, op.dout(), "dout"},
        Wanted{ops.dq, op.dq(), "dq", Role::result}})
    MESHWORK_ASSIGN_OR_RETURN(
        wanted.to,
        queryTensorOf(program, wanted.view, shape, wanted.name, wanted.role));
  for (const Wanted &wanted :
       {Wanted{ops.k, op.k(), "k"}, Wanted{ops.v, op.v(), "v"},
        Wanted{ops.dk, op.dk(), "dk", Role::result},
        Wanted{ops.dv, op.dv(), "dv", Role::result}})
    MESHWORK_ASSIGN_OR_RETURN(
        wanted.to,
        keyTensorOf(program, wanted.view, shape, wanted.name, wanted.role));
  MESHWORK_ASSIGN_OR_RETURN(ops.lse, rowTensorOf(program, op.lse(), shape));
  auto grad = std::make_unique<AttentionGradOperation>(std::move(shape),
                                                       std::move(ops));
  MESHWORK_RETURN_IF_ERROR(grad->describe());
  return grad;
}

} // namespace meshwork::runtime::cpu
