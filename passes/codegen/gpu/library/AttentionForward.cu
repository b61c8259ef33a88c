// Attention, forward: a thread block keeps a block of queries and walks the
// blocks of keys and values that they see.
#include "passes/codegen/gpu/library/AttentionDropout.h"
#include "passes/codegen/gpu/library/AttentionMma.h"
#include "passes/codegen/gpu/library/AttentionPlain.h"
#include "passes/codegen/gpu/library/AttentionSoftmax.h"

namespace meshwork::attention {
namespace {

template <typename T> struct ForwardOperands {
  const T *q, *k, *v;
  Tables tables;
  void *out;
  float *lse;
  Strides qStrides, kStrides, vStrides, outStrides;
  i64 lseSample, lseHead;
};

template <typename Engine> class Forward {
  using T = typename Engine::Element;
  static constexpr Tile tile = forwardTile(Engine::bf16, Engine::d);
  static constexpr int R = Engine::rows, C = Engine::columns(tile.keys),
                       N = Engine::columns(Engine::d);
  // Of keys and values; two where the next arrive while these are used.
  static constexpr int buffers = Engine::bf16 ? 2 : 1;
  static constexpr int keyBytes = Engine::tileBytes(tile.keys);

  const Shape &shape;
  const ForwardOperands<T> &ops;
  int sample, head, kvHead, query, columns;
  u32 qTile, stream, scratch;
  Softmax<Engine> softmax;
  float values[R][N];

public:
  MESHWORK_INLINE Forward(const Shape &shape, const ForwardOperands<T> &ops)
      : shape(shape), ops(ops) {
    int blocks = static_cast<int>(blocksOf(shape.rows, tile.queries));
    int pair = blockInGrid() / blocks, block = blockInGrid() % blocks;
    // Later queries see more keys, and blocks start in order: long ones first.
    query = (shape.causal ? blocks - 1 - block : block) * tile.queries;
    sample = pair / static_cast<int>(shape.heads);
    head = pair % static_cast<int>(shape.heads);
    kvHead = head / static_cast<int>(shape.heads / shape.kvHeads);
    columns = endOfKeys(shape, ops.tables);
    qTile = sharedAddress();
    stream = qTile + Engine::tileBytes(tile.queries);
    scratch = stream + buffers * 2 * keyBytes;
    setAll(values, 0);
  }

  MESHWORK_INLINE void run() {
    Range keys =
        mask().columnsOf(query, smaller(query + tile.queries, shape.rows));
    if (!shape.hasPositions || keys.end > 0)
      walk(keys);
    finish();
  }

private:
  MESHWORK_INLINE Mask mask() const { return Mask(shape, ops.tables, sample); }

  MESHWORK_INLINE void walk(const Range &keys) {
    int key = keys.first / tile.keys * tile.keys;
    copyRows<Engine, tile.queries, tile.threads>(
        qTile, {ops.q, ops.qStrides, shape.rows, sample, query, head}, shape);
    copyKeys(stream, key);
    for (u32 turn = 0; key < keys.end; key += tile.keys, turn ^= buffers - 1) {
      int next = key + tile.keys;
      finishCopies(); // and all are done with the other buffer
      if (buffers == 2 && next < keys.end)
        copyKeys(stream + (turn ^ 1) * 2 * keyBytes, next);
      addKeys(stream + turn * 2 * keyBytes,
              {query, tile.queries, key, tile.keys});
      if (buffers == 1) {
        meetBlock();
        if (next < keys.end)
          copyKeys(stream, next);
      }
    }
  }

  MESHWORK_INLINE void copyKeys(u32 to, int key) {
    copyRows<Engine, tile.keys, tile.threads>(
        to, {ops.k, ops.kStrides, columns, sample, key, kvHead}, shape);
    copyRows<Engine, tile.keys, tile.threads>(
        to + keyBytes, {ops.v, ops.vStrides, columns, sample, key, kvHead},
        shape);
  }

  MESHWORK_INLINE void addKeys(u32 buffer, const Block &block) {
    float scores[R][C];
    setAll(scores, 0);
    Engine::multiply(scores, qTile, buffer);
    toScores(scores, shape);
    if (mask().isPartial(block))
      fillUnseen<Engine, false>(scores, mask(), block, -infinity);
    softmax.add(scores, values, factorOf(shape));
    drop<Engine>(scores, shape, Dropout(shape, ops.tables, sample, head), block,
                 1); // The factor: at the end.
    Engine::accumulate(values, scores, buffer + keyBytes, scratch);
  }

  MESHWORK_INLINE void finish() {
    float factors[R];
    u32 thread = fresh(threadInBlock());
    float *lse = ops.lse + sample * ops.lseSample + head * ops.lseHead;
#pragma unroll
    for (int i = 0; i < R; ++i) {
      float sum = rowSum<Engine>(softmax.sum[i]);
      factors[i] = (drops(shape, ops.tables) ? shape.keepScale : 1.0f) / sum;
      if (shape.hasPositions && sum == 0)
        factors[i] = 0; // padding
      int row = query + static_cast<int>(Engine::firstRow(thread)) +
                Engine::rowStep(i);
      if (row < shape.rows && thread % Engine::lanesOfRow == 0)
        lse[row] = __builtin_fmaf(softmax.maximum[i], factorOf(shape),
                                  __nvvm_lg2_approx_f(sum)) *
                   ln2;
    }
    storeRows<Engine>(
        {ops.out, ops.outStrides, shape.rows, sample, query, head}, values,
        factors, qTile, shape);
  }
};

template <int D>
using ForwardMma = MmaEngine<D, forwardTile(true, D).queries /
                                    (forwardTile(true, D).threads / 2)>;
} // namespace

#define MESHWORK_FUNCTION(name, T, Engine)                                     \
  ATTENTION_FUNCTION void meshwork_attention_##name(                           \
      ATTENTION_FORWARD_PARAMETERS(T)) {                                       \
    Shape shape = ATTENTION_SHAPE;                                             \
    ForwardOperands<T> ops{q,                                                  \
                           k,                                                  \
                           v,                                                  \
                           ATTENTION_TABLES,                                   \
                           out,                                                \
                           lse,                                                \
                           {qSample, qPosition, qHead},                        \
                           {kSample, kPosition, kHead},                        \
                           {vSample, vPosition, vHead},                        \
                           {outSample, outPosition, outHead},                  \
                           lseSample,                                          \
                           lseHead};                                           \
    Forward<Engine>(shape, ops).run();                                         \
  }
#define MESHWORK_CLASS(d)                                                      \
  MESHWORK_FUNCTION(bf16_##d, Bf16, ForwardMma<d>)                             \
  MESHWORK_FUNCTION(f32_##d, float, PlainEngine<d>)
ATTENTION_CLASSES(MESHWORK_CLASS)

} // namespace meshwork::attention
