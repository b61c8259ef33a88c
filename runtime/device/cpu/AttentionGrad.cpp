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
  float *scores, *dprob, *dq, *delta;
  Bf16 *probabilities, *dscores; // bf16 only
  float *dk, *dv; // f32 sums of the task, [sequence, d]; bf16 only
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
  GradScratch carve(Carver &carver) const;
  Sums sumsOf(const GradScratch &scratch, int64_t sample, int64_t kvHead) const;
  void runTask(int64_t sample, int64_t kvHead, int thread);
  void runQueries(const GradScratch &scratch, const Sums &sums, int64_t sample,
                  int64_t head, int64_t queryBlock, int thread);
  void runBlock(GradBlock grad, const GradScratch &scratch, const Sums &sums,
                int64_t sample, int64_t head, int64_t query, int64_t key,
                int thread);
  void clear(const Sums &sums) const;
  void roundSums(const Sums &sums, int64_t sample, int64_t kvHead) const;

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
    return blockTimesSpec(shape, ops.k, shape.d, rows, columns, false);
  }));
  MESHWORK_RETURN_IF_ERROR(products(dk, [&](int64_t rows, int64_t columns) {
    int64_t ld = isBf16() ? shape.d : ops.dk.ld();
    return blockTimesSpec(shape, ops.q, ld, rows, columns, true);
  }));
  return products(dv, [&](int64_t rows, int64_t columns) {
    int64_t ld = isBf16() ? shape.d : ops.dv.ld();
    return blockTimesSpec(shape, ops.dout, ld, rows, columns, true);
  });
}

GradScratch AttentionGradOperation::carve(Carver &carver) const {
  int64_t rows = shape.queries.block, area = rows * shape.keys.block;
  GradScratch scratch{};
  scratch.scores = carver.take<float>(area);
  scratch.dprob = carver.take<float>(area);
  scratch.dq = carver.take<float>(rows * shape.d);
  scratch.delta = carver.take<float>(rows);
  if (isBf16()) {
    scratch.probabilities = carver.take<Bf16>(area);
    scratch.dscores = carver.take<Bf16>(area);
    scratch.dk = carver.take<float>(shape.sequence * shape.d);
    scratch.dv = carver.take<float>(shape.sequence * shape.d);
  }
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
  if (isBf16())
    return {reinterpret_cast<std::byte *>(scratch.dk),
            reinterpret_cast<std::byte *>(scratch.dv), shape.d, shape.d};
  return {ops.dk.at(arena, sample, 0, kvHead),
          ops.dv.at(arena, sample, 0, kvHead), ops.dk.ld(), ops.dv.ld()};
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
  if (isBf16())
    roundSums(sums, sample, kvHead);
}

void AttentionGradOperation::runQueries(const GradScratch &scratch,
                                        const Sums &sums, int64_t sample,
                                        int64_t head, int64_t queryBlock,
                                        int thread) {
  int64_t query = queryBlock * shape.queries.block;
  int64_t rows = shape.queries.lengthAt(queryBlock);
  auto *rowDot = isBf16() ? kernels.rowDotBf16 : kernels.rowDotF32;
  rowDot(ops.dout.at(arena, sample, query, head), ops.dout.ld(),
         ops.out.at(arena, sample, query, head), ops.out.ld(), rows, shape.d,
         scratch.delta);
  std::fill(scratch.dq, scratch.dq + rows * shape.d, 0.0f);
  BlockRange range = shape.keyBlocksFor(arena, sample, queryBlock);
  for (int64_t block = range.first; block < range.end; ++block) {
    GradBlock grad;
    grad.block = shape.scoreBlock(arena, sample, head, queryBlock, block);
    if (!shape.sees(grad.block))
      continue;
    grad.lse = ops.lse.at(arena, sample, head, query);
    grad.delta = scratch.delta;
    runBlock(grad, scratch, sums, sample, head, query, block * shape.keys.block,
             thread);
  }
  auto *round = isBf16() ? kernels.roundBf16 : kernels.roundF32;
  round(scratch.dq, shape.d, nullptr, rows, shape.d,
        ops.dq.at(arena, sample, query, head), ops.dq.ld());
}

void AttentionGradOperation::runBlock(GradBlock grad,
                                      const GradScratch &scratch,
                                      const Sums &sums, int64_t sample,
                                      int64_t head, int64_t query, int64_t key,
                                      int thread) {
  int64_t kvHead = head / shape.groupSize();
  int64_t rows = grad.block.rows, columns = grad.block.columns;
  auto multiply = [&](GemmGrid &grid, const void *lhs, const std::byte *rhs,
                      void *dst) {
    grid.at(rows, columns)
        .run(thread, static_cast<const std::byte *>(lhs), rhs,
             static_cast<std::byte *>(dst), nullptr, scratch.gemm);
  };
  const std::byte *q = ops.q.at(arena, sample, query, head);
  const std::byte *k = ops.k.at(arena, sample, key, kvHead);
  const std::byte *dout = ops.dout.at(arena, sample, query, head);
  multiply(scores, q, k, scratch.scores);
  multiply(dprob, dout, ops.v.at(arena, sample, key, kvHead), scratch.dprob);
  grad.block.scores = scratch.scores;
  grad.dprob = scratch.dprob;
  grad.block.probabilities =
      isBf16() ? static_cast<void *>(scratch.probabilities) : scratch.scores;
  grad.dscores =
      isBf16() ? static_cast<void *>(scratch.dscores) : scratch.dprob;
  (isBf16() ? kernels.gradBf16 : kernels.gradF32)(grad);
  multiply(dv, grad.block.probabilities, dout, sums.dv + key * sums.dvLd * 4);
  multiply(dk, grad.dscores, q, sums.dk + key * sums.dkLd * 4);
  multiply(dq, grad.dscores, k, scratch.dq);
}

void AttentionGradOperation::roundSums(const Sums &sums, int64_t sample,
                                       int64_t kvHead) const {
  kernels.roundBf16(reinterpret_cast<const float *>(sums.dk), sums.dkLd,
                    nullptr, shape.sequence, shape.d,
                    ops.dk.at(arena, sample, 0, kvHead), ops.dk.ld());
  kernels.roundBf16(reinterpret_cast<const float *>(sums.dv), sums.dvLd,
                    nullptr, shape.sequence, shape.d,
                    ops.dv.at(arena, sample, 0, kvHead), ops.dv.ld());
}

} // namespace

OperationOr make(const plan::AttentionGrad &op, const ProgramOnRank &program) {
  AttentionShape shape;
  MESHWORK_ASSIGN_OR_RETURN(
      shape, attentionShapeOf(program, op.q(), op.k(),
                              {op.scale(), op.causal(), op.window(),
                               op.dropout(), op.documents(), op.positions()}));
  GradOperands ops;
  struct Wanted {
    HeadTensor &to;
    uint32_t view;
    const char *role;
  };
  for (const Wanted &wanted :
       {Wanted{ops.q, op.q(), "q"}, Wanted{ops.out, op.out(), "out"},
        Wanted{ops.dout, op.dout(), "dout"}, Wanted{ops.dq, op.dq(), "dq"}})
    MESHWORK_ASSIGN_OR_RETURN(
        wanted.to, queryTensorOf(program, wanted.view, shape, wanted.role));
  for (const Wanted &wanted :
       {Wanted{ops.k, op.k(), "k"}, Wanted{ops.v, op.v(), "v"},
        Wanted{ops.dk, op.dk(), "dk"}, Wanted{ops.dv, op.dv(), "dv"}})
    MESHWORK_ASSIGN_OR_RETURN(
        wanted.to, keyTensorOf(program, wanted.view, shape, wanted.role));
  MESHWORK_ASSIGN_OR_RETURN(ops.lse, rowTensorOf(program, op.lse(), shape));
  auto grad = std::make_unique<AttentionGradOperation>(std::move(shape),
                                                       std::move(ops));
  MESHWORK_RETURN_IF_ERROR(grad->describe());
  return grad;
}

} // namespace meshwork::runtime::cpu
