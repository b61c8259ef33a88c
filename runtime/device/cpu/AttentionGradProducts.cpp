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
    return blockTimesSpec(shape, shape.ldOfQueries(ops.q), shape.d, rows,
                          columns, true);
  }));
  return products(dv, [&](int64_t rows, int64_t columns) {
    return blockTimesSpec(shape, shape.ldOfQueries(ops.dout), shape.d, rows,
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
  scratch.q = shape.takeQueries(carver);
  scratch.dout = shape.takeQueries(carver);
  scratch.k = shape.takeKeys(carver);
  scratch.keyColumns = shape.takeKeys(carver);
  scratch.valueColumns = shape.takeKeys(carver);
  scratch.scores = carver.take<float>(area);
  scratch.dprob = carver.take<float>(area);
  scratch.delta = carver.take<float>(rows);
  if (!shape.productsInF32()) {
    scratch.probabilities = carver.take<Bf16>(area);
    scratch.dscores = carver.take<Bf16>(area);
  }
  uint64_t gemmBytes = 0;
  for (const GemmGrid *grid : {&scores, &dprob, &dq, &dk, &dv})
    gemmBytes = std::max(gemmBytes, grid->scratchBytes());
  scratch.gemm = carver.take<std::byte>(static_cast<int64_t>(gemmBytes));
  return scratch;
}

GradQueries GradProducts::prepare(std::byte *arena, int64_t sample,
                                  int64_t head, int64_t queryBlock,
                                  const GradScratch &scratch) const {
  QueryBlock queries =
      shape.queryBlock(arena, sample, queryBlock, scratch.blocks.queries);
  auto *rowDot =
      shape.dtype == DType::bf16 ? kernels.rowDotBf16 : kernels.rowDotF32;
  rowDot(ops.dout.at(arena, sample, queries.first, head), ops.dout.ld(),
         ops.out.at(arena, sample, queries.first, head), ops.out.ld(),
         queries.rows, shape.d, scratch.delta);
  return {queries, shape.queryRows(arena, ops.q, queries, head, scratch.q),
          shape.queryRows(arena, ops.dout, queries, head, scratch.dout)};
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
  bool inF32 = shape.productsInF32();
  grad.block.probabilities =
      inF32 ? scratch.scores : static_cast<void *>(scratch.probabilities);
  grad.dscores = inF32 ? scratch.dprob : static_cast<void *>(scratch.dscores);
  return grad;
}

void GradProducts::add(std::byte *arena, const GradQueries &queries,
                       int64_t head, int64_t keyBlock, const KeySums &sums,
                       float *dqSums, const GradScratch &scratch, int thread) {
  GradBlock grad = gradBlock(arena, queries.block, head, keyBlock, scratch);
  int64_t kvHead = head / shape.groupSize();
  auto multiply = [&](GemmGrid &grid, const void *lhs, const std::byte *rhs,
                      void *dst) {
    grid.at(grad.block.rows, grad.block.columns)
        .run(thread, static_cast<const std::byte *>(lhs), rhs,
             static_cast<std::byte *>(dst), nullptr, scratch.gemm);
  };
  auto columnsOf = [&](const HeadTensor &of, std::byte *copy) {
    return shape.keyColumns(arena, of, queries.block, kvHead, keyBlock, copy);
  };
  multiply(scores, queries.q, columnsOf(ops.k, scratch.keyColumns),
           scratch.scores);
  multiply(dprob, queries.dout, columnsOf(ops.v, scratch.valueColumns),
           scratch.dprob);
  (shape.productsInF32() ? kernels.gradF32 : kernels.gradBf16)(grad);
  int64_t key = grad.block.firstKey * 4; // bytes of a column of f32
  multiply(dv, grad.block.probabilities, queries.dout, sums.dv + key * shape.d);
  multiply(dk, grad.dscores, queries.q, sums.dk + key * shape.d);
  multiply(
      dq, grad.dscores,
      shape.keyRows(arena, ops.k, queries.block, kvHead, keyBlock, scratch.k),
      dqSums);
}

} // namespace meshwork::runtime::cpu
