// The products of attention's gradient for one block of queries and one of
// keys; AttentionGrad.cpp says in which order and on which threads.
#pragma once

#include "runtime/device/cpu/AttentionShape.h"

namespace meshwork::runtime::cpu {

struct GradOperands {
  HeadTensor q, k, v, out, dout, dq, dk, dv;
  RowTensor lse;
};

/// Results in f32 are their own sums.
inline bool sumsInScratch(const HeadTensor &result) {
  return result.tensor.dtype != DType::f32;
}
/// Elements from one row of f32 sums to the next.
inline int64_t ldOfSums(const HeadTensor &result, int64_t d) {
  return sumsInScratch(result) ? d : result.ld();
}

/// Where the f32 sums of dk and dv of one sample and key head are.
struct KeySums {
  std::byte *dk, *dv;
};

/// What one thread holds of a block.
struct GradScratch {
  BlockScratch blocks;
  float *scores, *dprob, *delta;
  Bf16 *probabilities, *dscores; // bf16 only
  std::byte *gemm;
};

class GradProducts {
public:
  GradProducts(const AttentionShape &shape, const GradOperands &ops)
      : shape(shape), ops(ops) {}

  absl::Status describe();
  absl::Status generate(int threads);
  GradScratch carve(Carver &carver) const;

  /// What each row of a block of queries sees, and its delta.
  QueryBlock prepare(std::byte *arena, int64_t sample, int64_t head,
                     int64_t queryBlock, const GradScratch &scratch) const;
  /// Adds to the sums of the block's keys, and to `dqSums` [rows, d].
  void add(std::byte *arena, const QueryBlock &queries, int64_t head,
           int64_t keyBlock, const KeySums &sums, float *dqSums,
           const GradScratch &scratch, int thread);

private:
  bool isBf16() const { return shape.dtype == DType::bf16; }
  /// The block before its products, and after those of its scores.
  GradBlock gradBlock(std::byte *arena, const QueryBlock &queries, int64_t head,
                      int64_t keyBlock, const GradScratch &scratch) const;

  const AttentionShape &shape;
  const GradOperands &ops;
  GemmGrid scores, dprob, dq, dk, dv;
  const AttentionKernels &kernels = attentionKernels();
};

} // namespace meshwork::runtime::cpu
