#include "runtime/device/cpu/AttentionGradProducts.h"

#include <algorithm>
#include <span>

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
    return blockTimesSpec(shape, shape.ldOfKeys(ops.k), rows, columns, false);
  }));
  MESHWORK_RETURN_IF_ERROR(products(dk, [&](int64_t rows, int64_t columns) {
    return blockTimesSpec(shape, shape.ldOfQueries(ops.q), rows, columns, true);
  }));
  return products(dv, [&](int64_t rows, int64_t columns) {
    return blockTimesSpec(shape, shape.ldOfQueries(ops.dout), rows, columns,
                          true);
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
  for (GradScratch::OfQueries &queries :
       std::span(scratch.queries, shape.blocksTogether()))
    queries = {carver.take<QueryRow>(rows), shape.takeQueries(carver),
               shape.takeQueries(carver),   dk.takePacked(carver),
               dv.takePacked(carver),       carver.take<float>(rows)};
  scratch.k = shape.takeKeys(carver);
  scratch.keyColumns = shape.takeKeys(carver);
  scratch.valueColumns = shape.takeKeys(carver);
  scratch.packedK = dq.takePacked(carver);
  scratch.packedKeyColumns = scores.takePacked(carver);
  scratch.packedValueColumns = dprob.takePacked(carver);
  scratch.keyNumbers = shape.takeKeyNumbers(carver);
  scratch.scores = carver.take<float>(area);
  scratch.dprob = carver.take<float>(area);
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
                                  const GradScratch::OfQueries &scratch,
                                  std::byte *gemmScratch, int thread) {
  QueryBlock block = shape.queryBlock(arena, sample, queryBlock, scratch.rows);
  auto *rowDot =
      shape.dtype == DType::bf16 ? kernels.rowDotBf16 : kernels.rowDotF32;
  rowDot(ops.dout.at(arena, sample, block.first, head), ops.dout.ld(),
         ops.out.at(arena, sample, block.first, head), ops.out.ld(), block.rows,
         shape.d, scratch.delta);
  const std::byte *q = shape.queryRows(arena, ops.q, block, head, scratch.q);
  const std::byte *dout =
      shape.queryRows(arena, ops.dout, block, head, scratch.dout);
  auto packed = [&](GemmGrid &grid, const std::byte *rhs, std::byte *to) {
    return grid.packed(block.rows, shape.keys.lengthAt(0), thread, rhs, to,
                       gemmScratch);
  };
  return {block,
          q,
          dout,
          packed(dk, q, scratch.packedQ),
          packed(dv, dout, scratch.packedDout),
          scratch.delta};
}

GradKeys GradProducts::keys(std::byte *arena, const GradQueries &queries,
                            int64_t head, int64_t keyBlock,
                            const GradScratch &scratch, int thread) {
  int64_t kvHead = head / shape.groupSize();
  auto columnsOf = [&](const HeadTensor &of, std::byte *copy) {
    return shape.keyColumns(arena, of, queries.block, kvHead, keyBlock, copy);
  };
  auto packed = [&](GemmGrid &grid, const std::byte *rhs, std::byte *to) {
    return grid.packed(queries.block.rows, shape.keys.lengthAt(keyBlock),
                       thread, rhs, to, scratch.gemm);
  };
  return {packed(dq,
                 shape.keyRows(arena, ops.k, queries.block, kvHead, keyBlock,
                               scratch.k),
                 scratch.packedK),
          packed(scores, columnsOf(ops.k, scratch.keyColumns),
                 scratch.packedKeyColumns),
          packed(dprob, columnsOf(ops.v, scratch.valueColumns),
                 scratch.packedValueColumns)};
}

GradBlock GradProducts::gradBlock(std::byte *arena, const GradQueries &queries,
                                  int64_t head, int64_t keyBlock,
                                  const GradScratch &scratch) const {
  const QueryBlock &block = queries.block;
  GradBlock grad;
  grad.block =
      shape.scoreBlock(arena, head, block, keyBlock, scratch.keyNumbers);
  grad.lse = ops.lse.at(arena, block.sample, head, block.first);
  grad.delta = queries.delta;
  grad.block.scores = scratch.scores;
  grad.dprob = scratch.dprob;
  bool inF32 = shape.productsInF32();
  grad.block.probabilities =
      inF32 ? scratch.scores : static_cast<void *>(scratch.probabilities);
  grad.dscores = inF32 ? scratch.dprob : static_cast<void *>(scratch.dscores);
  return grad;
}

void GradProducts::add(std::byte *arena, const GradQueries &queries,
                       const GradKeys &keys, int64_t head, int64_t keyBlock,
                       const GradSums &sums, const GradScratch &scratch,
                       int thread) {
  GradBlock grad = gradBlock(arena, queries, head, keyBlock, scratch);
  auto multiply = [&](GemmGrid &grid, const void *lhs, const std::byte *rhs,
                      float *to) {
    grid.at(grad.block.rows, grad.block.columns)
        .run(thread, static_cast<const std::byte *>(lhs), rhs,
             reinterpret_cast<std::byte *>(to), nullptr, scratch.gemm);
  };
  multiply(scores, queries.q, keys.keyColumns, scratch.scores);
  multiply(dprob, queries.dout, keys.valueColumns, scratch.dprob);
  (shape.productsInF32() ? kernels.gradF32 : kernels.gradBf16)(grad);
  multiply(dv, grad.block.probabilities, queries.rightDout, sums.dv);
  multiply(dk, grad.dscores, queries.rightQ, sums.dk);
  multiply(dq, grad.dscores, keys.rows, sums.dq);
}

} // namespace meshwork::runtime::cpu
