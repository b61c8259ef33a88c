#include "runtime/device/cpu/AttentionGradProducts.h"

#include <algorithm>

namespace meshwork::runtime::cpu {

absl::Status GradProducts::describe() {
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
    return blockTimesSpec(shape, ops.q.ld(), ldOfSums(ops.dk, shape.d), rows,
                          columns, true);
  }));
  return products(dv, [&](int64_t rows, int64_t columns) {
    return blockTimesSpec(shape, ops.dout.ld(), ldOfSums(ops.dv, shape.d), rows,
                          columns, true);
  });
}

absl::Status GradProducts::generate(int threads) {
  for (GemmGrid *grid : {&scores, &dprob, &dq, &dk, &dv})
    MESHWORK_RETURN_IF_ERROR(grid->generate(threads));
  return absl::OkStatus();
}

GradScratch GradProducts::carve(Carver &carver) const {
  int64_t rows = shape.queries.block, area = rows * shape.keys.block;
  GradScratch scratch{};
  scratch.blocks = shape.carve(carver);
  scratch.scores = carver.take<float>(area);
  scratch.dprob = carver.take<float>(area);
  scratch.delta = carver.take<float>(rows);
  if (isBf16()) {
    scratch.probabilities = carver.take<Bf16>(area);
    scratch.dscores = carver.take<Bf16>(area);
  }
  uint64_t gemmBytes = 0;
  for (const GemmGrid *grid : {&scores, &dprob, &dq, &dk, &dv})
    gemmBytes = std::max(gemmBytes, grid->scratchBytes());
  scratch.gemm = carver.take<std::byte>(static_cast<int64_t>(gemmBytes));
  return scratch;
}

QueryBlock GradProducts::prepare(std::byte *arena, int64_t sample, int64_t head,
                                 int64_t queryBlock,
                                 const GradScratch &scratch) const {
  QueryBlock queries =
      shape.queryBlock(arena, sample, queryBlock, scratch.blocks.queries);
  auto *rowDot = isBf16() ? kernels.rowDotBf16 : kernels.rowDotF32;
  rowDot(ops.dout.at(arena, sample, queries.first, head), ops.dout.ld(),
         ops.out.at(arena, sample, queries.first, head), ops.out.ld(),
         queries.rows, shape.d, scratch.delta);
  return queries;
}

GradBlock GradProducts::gradBlock(std::byte *arena, const QueryBlock &queries,
                                  int64_t head, int64_t keyBlock,
                                  const GradScratch &scratch) const {
  GradBlock grad;
  grad.block = shape.scoreBlock(arena, head, queries, keyBlock, scratch.blocks);
  grad.lse = ops.lse.at(arena, queries.sample, head, queries.first);
  grad.delta = scratch.delta;
  grad.block.scores = scratch.scores;
  grad.dprob = scratch.dprob;
  grad.block.probabilities =
      isBf16() ? static_cast<void *>(scratch.probabilities) : scratch.scores;
  grad.dscores =
      isBf16() ? static_cast<void *>(scratch.dscores) : scratch.dprob;
  return grad;
}

void GradProducts::add(std::byte *arena, const QueryBlock &queries,
                       int64_t head, int64_t keyBlock, const KeySums &sums,
                       float *dqSums, const GradScratch &scratch, int thread) {
  GradBlock grad = gradBlock(arena, queries, head, keyBlock, scratch);
  auto multiply = [&](GemmGrid &grid, const void *lhs, const std::byte *rhs,
                      void *dst) {
    grid.at(grad.block.rows, grad.block.columns)
        .run(thread, static_cast<const std::byte *>(lhs), rhs,
             static_cast<std::byte *>(dst), nullptr, scratch.gemm);
  };
  auto keyRows = [&](const HeadTensor &of, std::byte *copy) {
    return shape.keyRows(arena, of, queries, head / shape.groupSize(), keyBlock,
                         copy);
  };
  auto queryRows = [&](const HeadTensor &of) {
    return of.at(arena, queries.sample, queries.first, head);
  };
  const std::byte *q = queryRows(ops.q), *dout = queryRows(ops.dout);
  const std::byte *k = keyRows(ops.k, scratch.blocks.k);
  multiply(scores, q, k, scratch.scores);
  multiply(dprob, dout, keyRows(ops.v, scratch.blocks.v), scratch.dprob);
  (isBf16() ? kernels.gradBf16 : kernels.gradF32)(grad);
  int64_t key = grad.block.firstKey * 4; // bytes of a column of f32
  multiply(dv, grad.block.probabilities, dout,
           sums.dv + key * ldOfSums(ops.dv, shape.d));
  multiply(dk, grad.dscores, q, sums.dk + key * ldOfSums(ops.dk, shape.d));
  multiply(dq, grad.dscores, k, dqSums);
}

} // namespace meshwork::runtime::cpu
