// The products of attention's gradient for one block of queries and one of
// keys; AttentionGrad.cpp says in which order and on which threads.
#pragma once

#include "runtime/device/cpu/AttentionShape.h"

namespace meshwork::runtime::cpu {

struct GradOperands {
  HeadTensor q, k, v, out, dout, dq, dk, dv;
  RowTensor lse;
};

/// A block of queries: what its rows see, and q, dout and delta of its rows.
/// The products of dk and dv have q and dout on the right.
struct GradQueries {
  QueryBlock block;
  const std::byte *q, *dout;
  const std::byte *rightQ, *rightDout;
  const float *delta;
};

/// A block of keys: rows of k, and k and v as scoreSpec() takes them.
struct GradKeys {
  const std::byte *rows, *keyColumns, *valueColumns;
};

/// Where the f32 sums of a block go: dk and dv of its keys, dq of its queries.
struct GradSums {
  float *dk, *dv, *dq;
};

/// What one thread holds of blocks.
struct GradScratch {
  struct OfQueries {
    QueryRow *rows;
    std::byte *q, *dout; // copies, where products take such
    std::byte *packedQ, *packedDout;
    float *delta;
  } queries[maxBlocksTogether];
  std::byte *k, *keyColumns, *valueColumns; // copies likewise
  std::byte *packedK, *packedKeyColumns, *packedValueColumns;
  int32_t *keyNumbers;
  float *scores, *dprob;
  Bf16 *probabilities, *dscores; // of products in bf16 only
  std::byte *gemm;
};

class GradProducts {
public:
  GradProducts(const AttentionShape &shape, const GradOperands &ops)
      : shape(shape), ops(ops) {}

  absl::Status describe();
  absl::Status generate(int threads);
  GradScratch carve(Carver &carver) const;

  GradQueries prepare(std::byte *arena, int64_t sample, int64_t head,
                      int64_t queryBlock, const GradScratch::OfQueries &scratch,
                      std::byte *gemmScratch, int thread);
  GradKeys keys(std::byte *arena, const GradQueries &queries, int64_t head,
                int64_t keyBlock, const GradScratch &scratch, int thread);
  /// Adds the block's products to `sums`.
  void add(std::byte *arena, const GradQueries &queries, const GradKeys &keys,
           int64_t head, int64_t keyBlock, const GradSums &sums,
           const GradScratch &scratch, int thread);

private:
  /// Everything of a block, over the memory where its products are.
  GradBlock gradBlock(std::byte *arena, const GradQueries &queries,
                      int64_t head, int64_t keyBlock,
                      const GradScratch &scratch) const;

  const AttentionShape &shape;
  const GradOperands &ops;
  GemmGrid scores, dprob, dq, dk, dv;
  const AttentionKernels &kernels = attentionKernels();
};

} // namespace meshwork::runtime::cpu
