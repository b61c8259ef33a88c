// What attention and its gradient share: operands, blocks, visibility.
#pragma once

#include <optional>

#include "runtime/device/cpu/AttentionKernels.h"
#include "runtime/device/cpu/Bf16.h"
#include "runtime/device/cpu/GemmGrid.h"
#include "runtime/device/cpu/Operation.h"

namespace meshwork::runtime::cpu {

/// Half-open range of blocks.
struct BlockRange {
  int64_t first, end;
};

struct AttentionShape {
  int64_t batch = 0, heads = 0, kvHeads = 0, d = 0;
  int64_t rows = 0, sequence = 0; // of queries, of keys
  DType dtype = DType::f32;       // of everything but lse
  float scale = 1;
  bool causal = false;
  int64_t window = 0;              // 0: unlimited
  std::optional<Tensor> documents; // [batch, rows], dense; absent: one each
  std::optional<Tensor> positions; // [rows], dense; absent: 0, 1, ...
  Cut queries, keys;

  bool hasDropout = false;
  uint32_t stream = 0, threshold = 0;
  float keepScale = 1;
  Tensor random;
  int64_t globalHeads = 0;         // of which this rank has some
  std::optional<Tensor> firstHead; // absent: 0

  int64_t groupSize() const { return heads / kvHeads; }
  int64_t bytes() const { return bytesOf(dtype); }
  /// Key blocks of which at least one key is seen by a query of the block.
  BlockRange keyBlocksFor(std::byte *arena, int64_t sample,
                          int64_t queryBlock) const;
  /// Whether a row of the block sees a key: between the first and the last key
  /// block for rows that are not neighbours, none may.
  bool sees(const ScoreBlock &block) const;
  /// Everything of `block` but its memory: sizes, visibility, dropout.
  ScoreBlock scoreBlock(std::byte *arena, int64_t sample, int64_t head,
                        int64_t queryBlock, int64_t keyBlock) const;

private:
  /// Where the documents of a sample's rows from `row` on begin, or null.
  const int32_t *documentsAt(std::byte *arena, int64_t sample,
                             int64_t row) const;
  /// Which queries of the sequence the rows from `row` on are, or null.
  const int32_t *positionsAt(std::byte *arena, int64_t row) const;
};

/// The attributes that Attention and AttentionGrad have in common.
struct AttentionAttributes {
  float scale;
  bool causal;
  int64_t window;
  const plan::Dropout *dropout;
  uint32_t documents, positions; // views, or plan::noView
};

/// Settles the shape from q and k; checks attributes.
absl::StatusOr<AttentionShape>
attentionShapeOf(const ProgramOnRank &program, uint32_t q, uint32_t k,
                 const AttentionAttributes &attributes);

/// A [batch, rows, heads, d] operand with dense d; of keys, rows and heads are
/// theirs.
struct HeadTensor {
  Tensor tensor;
  /// Elements from one position to the next; at least d.
  int64_t ld() const;
  std::byte *at(std::byte *arena, int64_t sample, int64_t position,
                int64_t head) const {
    return tensor.in(arena) +
           (sample * tensor.strides[0] + position * tensor.strides[1] +
            head * tensor.strides[2]) *
               tensor.bytes();
  }
};

absl::StatusOr<HeadTensor> queryTensorOf(const ProgramOnRank &program,
                                         uint32_t view,
                                         const AttentionShape &shape,
                                         const char *role);
absl::StatusOr<HeadTensor> keyTensorOf(const ProgramOnRank &program,
                                       uint32_t view,
                                       const AttentionShape &shape,
                                       const char *role);

/// The [batch, heads, rows] log-sum-exp, dense along the rows.
struct RowTensor {
  Tensor tensor;
  float *at(std::byte *arena, int64_t sample, int64_t head,
            int64_t position) const {
    return reinterpret_cast<float *>(tensor.in(arena)) +
           sample * tensor.strides[0] + head * tensor.strides[1] + position;
  }
};

absl::StatusOr<RowTensor> rowTensorOf(const ProgramOnRank &program,
                                      uint32_t view,
                                      const AttentionShape &shape);

/// rows x columns scores = left (d inner) times right transposed.
GemmSpec scoreSpec(const AttentionShape &shape, const HeadTensor &left,
                   const HeadTensor &right, int64_t rows, int64_t columns);
/// rows x d f32 sums += block (rows x columns, ld of a block) times right;
/// `transposed` takes the block's transpose: columns x d sums.
GemmSpec blockTimesSpec(const AttentionShape &shape, const HeadTensor &right,
                        int64_t sumsLd, int64_t rows, int64_t columns,
                        bool transposed);

} // namespace meshwork::runtime::cpu
