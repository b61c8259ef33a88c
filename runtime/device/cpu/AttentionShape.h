// What attention and its gradient share: operands, blocks, visibility.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>

#include "runtime/device/cpu/AttentionKernels.h"
#include "runtime/device/cpu/Bf16.h"
#include "runtime/device/cpu/GemmGrid.h"
#include "runtime/device/cpu/Operation.h"
#include "runtime/device/cpu/TileGemm.h"

namespace meshwork::runtime::cpu {

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

/// Half-open range of blocks.
struct BlockRange {
  int64_t first, end;
};
constexpr BlockRange noBlocks{std::numeric_limits<int64_t>::max(), 0};
inline BlockRange covering(BlockRange a, BlockRange b) {
  return {std::min(a.first, b.first), std::max(a.end, b.end)};
}

/// A block of queries of one sample.
struct QueryBlock {
  int64_t sample, first, rows; // `first` of q's rows
  const QueryRow *queries;     // [rows]
  int64_t numKeys;             // rows of k that are no padding
  BlockRange keyBlocks;        // of which a row may see a key, never more
};

/// Query blocks that may meet a block of keys one after the other: keys are
/// then copied, and their gradients' sums fetched, once for all of them.
constexpr int64_t maxBlocksTogether = 8;

struct AttentionShape {
  int64_t batch = 0, heads = 0, kvHeads = 0, d = 0;
  int64_t rows = 0, sequence = 0; // of q, of k
  int64_t totalKeys = 0;      // of the whole sequence, by which dropout counts
  DType dtype = DType::f32;   // of q, k, v
  DType product = DType::f32; // of products: f32 where bf16 is slower
  float scale = 1, cap = 0;
  bool causal = false;
  int64_t window = 0;                 // 0: unlimited
  std::optional<Tensor> documents;    // [batch, rows], dense; absent: one each
  std::optional<Tensor> positions;    // [rows], dense; absent: 0, 1, ...
  std::optional<Tensor> keyPositions; // [sequence], dense; absent: 0, 1, ...
  Cut queries, keys;

  bool hasDropout = false;
  uint32_t stream = 0, threshold = 0;
  float keepScale = 1;
  Tensor random;
  int64_t globalHeads = 0;         // of which this rank has some
  std::optional<Tensor> firstHead; // absent: 0

  int64_t groupSize() const { return heads / kvHeads; }
  int64_t bytes() const { return bytesOf(dtype); }

  /// Of a block, for dropout; else null.
  int32_t *takeKeyNumbers(Carver &carver) const {
    return hasDropout ? carver.take<int32_t>(keys.block) : nullptr;
  }
  /// Says in `queries` what each row of the block sees.
  QueryBlock queryBlock(std::byte *arena, int64_t sample, int64_t index,
                        QueryRow *queries) const;
  /// Whether a row of the block sees a key: between the first and the last key
  /// block for rows that are not neighbours, none may.
  bool sees(const QueryBlock &block, int64_t keyBlock) const;
  /// Everything of a block but its memory: sizes, visibility, dropout.
  ScoreBlock scoreBlock(std::byte *arena, int64_t head,
                        const QueryBlock &queryBlock, int64_t keyBlock,
                        int32_t *keyNumbers) const;
  /// A block of q or of the like for a product, rows ldOfQueries() apart: for
  /// products in f32 a copy in `scratch`, dense and wide.
  const std::byte *queryRows(std::byte *arena, const HeadTensor &of,
                             const QueryBlock &queries, int64_t head,
                             std::byte *scratch) const;
  /// A block of k or v, likewise. With keyPositions it is always a copy, where
  /// padding is zero: a product of a probability of zero and a NaN would be a
  /// NaN.
  const std::byte *keyRows(std::byte *arena, const HeadTensor &of,
                           const QueryBlock &queries, int64_t kvHead,
                           int64_t keyBlock, std::byte *scratch) const;
  /// The same for scoreSpec(): for products in f32 [d, keys.block].
  const std::byte *keyColumns(std::byte *arena, const HeadTensor &of,
                              const QueryBlock &queries, int64_t kvHead,
                              int64_t keyBlock, std::byte *scratch) const;
  /// A block of k or the like, of whose lines one block of queries of `turns`
  /// fetches every turns-th; the caller says which by `begin`.
  FetchAhead keysAhead(std::byte *arena, const HeadTensor &of, int64_t sample,
                       int64_t kvHead, int64_t keyBlock, int64_t turns) const;
  /// Whether rhs of a product is packed by the caller, who multiplies with it
  /// again: our tiles of bf16 would pack it each time.
  bool packsRight() const { return hasTileGemm(product); }
  bool productsInF32() const { return product == DType::f32; }
  /// What a thread holds of them shall fit the second-level cache; in f32 it is
  /// twice as much. Products of oneDNN were never measured with more than four.
  int64_t blocksTogether() const {
    return packsRight() ? maxBlocksTogether : maxBlocksTogether / 2;
  }
  bool copiesKeys() const { return productsInF32() || keyPositions; }
  /// Of copies and of sums in f32: rows are whole vectors.
  int64_t paddedD() const { return ceilDiv(d, 16) * 16; }
  int64_t ldOfQueries(const HeadTensor &of) const {
    return productsInF32() ? paddedD() : of.ld();
  }
  int64_t ldOfKeys(const HeadTensor &of) const {
    return copiesKeys() ? paddedD() : of.ld();
  }
  /// Scratch for such a copy of queries or keys; null where there is none.
  std::byte *takeQueries(Carver &carver) const {
    return productsInF32() ? takeCopy(carver, queries.block) : nullptr;
  }
  std::byte *takeKeys(Carver &carver) const {
    return copiesKeys() ? takeCopy(carver, keys.block) : nullptr;
  }

private:
  /// Rows of k that are no padding.
  int64_t countKeys(std::byte *arena) const;
  void fillKeys(std::byte *arena, const ScoreBlock &block, int32_t *to) const;
  std::byte *takeCopy(Carver &carver, int64_t copied) const {
    return carver.take<std::byte>(copied * paddedD() * bytesOf(product));
  }
};

/// Settles the shape from q and k; checks what they are told.
absl::StatusOr<AttentionShape>
attentionShapeOf(const ProgramOnRank &program, uint32_t q, uint32_t k,
                 const plan::AttentionPart &part);

/// Operands are of the shape's dtype, results of that or f32.
enum class Role { operand, result };
absl::StatusOr<HeadTensor> queryTensorOf(const ProgramOnRank &program,
                                         uint32_t view,
                                         const AttentionShape &shape,
                                         const char *name,
                                         Role role = Role::operand);
absl::StatusOr<HeadTensor> keyTensorOf(const ProgramOnRank &program,
                                       uint32_t view,
                                       const AttentionShape &shape,
                                       const char *name,
                                       Role role = Role::operand);

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

// The products of attention. Where packsRight(), run() takes a packed rhs.

/// rows x columns scores = left (queries) times keyColumns() of right.
GemmSpec scoreSpec(const AttentionShape &shape, const HeadTensor &left,
                   const HeadTensor &right, int64_t rows, int64_t columns);
/// rows x d f32 sums += block (rows x columns, ld of a block) times right;
/// `transposed` takes the block's transpose: columns x d sums. Rows of sums are
/// paddedD() apart.
GemmSpec blockTimesSpec(const AttentionShape &shape, int64_t rightLd,
                        int64_t rows, int64_t columns, bool transposed);

} // namespace meshwork::runtime::cpu
