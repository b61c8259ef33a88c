// The products of attention's gradient for one block of queries and one of
// keys; AttentionGrad.cpp says in which order and on which threads.
#pragma once

#include "runtime/device/cpu/AttentionShape.h"

namespace meshwork::runtime::cpu {

struct GradOperands {
  HeadTensor q, k, v, out, dout, dq, dk, dv;
  RowTensor lse;
};

/// Dense results in f32 are their own sums; products that add to rows far apart
/// are slower.
inline bool sumsInScratch(const HeadTensor &result, int64_t d) {
  return result.tensor.dtype != DType::f32 || result.ld() != d;
}

/// Where the f32 sums of dk and dv of one sample and key head are.
struct KeySums {
  std::byte *dk, *dv;
};

/// What one thread holds of a block.
struct GradScratch {
  BlockScratch blocks;
  // Copies, where products take such.
  std::byte *q, *dout, *k, *keyColumns, *valueColumns;
  float *scores, *dprob, *delta;
  Bf16 *probabilities, *dscores; // of products in bf16 only
  std::byte *gemm;
};

/// A block of queries and its rows of q and dout, as products take them.
struct GradQueries {
  QueryBlock block;
  const std::byte *q, *dout;
};

class GradProducts {
public:
  GradProducts(const AttentionShape &shape, const GradOperands &ops)
      : shape(shape), ops(ops) {}

  absl::Status describe();
  absl::Status generate(int threads);
  GradScratch carve(Carver &carver) const;

  /// What each row of a block of queries sees, its delta, and its operands.
  GradQueries prepare(std::byte *arena, int64_t sample, int64_t head,
                      int64_t queryBlock, const GradScratch &scratch) const;
  /// Adds to the sums of the block's keys, and to `dqSums` [rows, d].
  void add(std::byte *arena, const GradQueries &queries, int64_t head,
           int64_t keyBlock, const KeySums &sums, float *dqSums,
           const GradScratch &scratch, int thread);

private:
  /// Everything of a block, over the memory where its products are.
  GradBlock gradBlock(std::byte *arena, const QueryBlock &queries, int64_t head,
                      int64_t keyBlock, const GradScratch &scratch) const;

  const AttentionShape &shape;
  const GradOperands &ops;
  GemmGrid scores, dprob, dq, dk, dv;
  const AttentionKernels &kernels = attentionKernels();
};

} // namespace meshwork::runtime::cpu
