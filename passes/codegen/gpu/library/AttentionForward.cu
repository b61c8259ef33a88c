// Attention, forward: a thread block keeps a block of queries and walks the
// blocks of keys that they see. While one product runs, the other's operand
// arrives: values during q times k, the next keys during softmax times v.
#include "passes/codegen/gpu/library/AttentionMma.h"
#include "passes/codegen/gpu/library/AttentionPlain.h"
#include "passes/codegen/gpu/library/AttentionSoftmax.h"

namespace meshwork::attention {
namespace {

template <typename T> struct ForwardOperands {
  const T *q, *k, *v;
  const i32 *random, *firstHead;
  T *out;
  float *lse;
  Strides qStrides, kStrides, vStrides, outStrides;
  i64 lseSample, lseHead;
};

template <typename Engine> class Forward {
  using T = typename Engine::Element;
  static constexpr Tile tile = forwardTile(Engine::bf16, Engine::d);
  static constexpr int R = Engine::rows, N = Engine::columns(Engine::d);

  const Shape &shape;
  const ForwardOperands<T> &ops;
  int sample, head, kvHead, query;
  u32 qTile, kTile, vTile, scratch;
  Softmax<Engine> softmax;
  float values[R][N];

public:
  MESHWORK_INLINE Forward(const Shape &shape, const ForwardOperands<T> &ops) : shape(shape), ops(ops) {
    int blocks = static_cast<int>(blocksOf(shape.sequence, tile.queries));
    int pair = blockInGrid() / blocks, block = blockInGrid() % blocks;
    // Later queries see more keys, and blocks start in order: long ones first.
    query = (shape.causal ? blocks - 1 - block : block) * tile.queries;
    sample = pair / static_cast<int>(shape.heads);
    head = pair % static_cast<int>(shape.heads);
    kvHead = head / static_cast<int>(shape.heads / shape.kvHeads);
    qTile = sharedAddress();
    kTile = qTile + Engine::tileBytes(tile.queries);
    vTile = kTile + Engine::tileBytes(tile.keys);
    scratch = vTile + Engine::tileBytes(tile.keys);
    setAll(values, 0);
  }

  MESHWORK_INLINE void run() {
    Range keys = keysOf(shape, query, smaller(query + tile.queries, shape.sequence));
    int key = keys.first / tile.keys * tile.keys;
    copyRows<Engine, tile.queries, tile.threads>(qTile, {ops.q, ops.qStrides, shape.sequence, sample, query, head}, shape);
    copyKeys(key);
    Dropout dropout(shape, ops.random, ops.firstHead, sample, head);
    for (; key < keys.end; key += tile.keys) {
      finishCopies(); // of keys; and all are done with the values before
      copyRows<Engine, tile.keys, tile.threads>(vTile, {ops.v, ops.vStrides, shape.sequence, sample, key, kvHead}, shape);
      float scores[R][Engine::columns(tile.keys)];
      setAll(scores, 0);
      Engine::multiply(scores, qTile, kTile);
      finishCopies(); // of values; and all are done with the keys
      if (key + tile.keys < keys.end)
        copyKeys(key + tile.keys);
      addValues(scores, {query, tile.queries, key, tile.keys}, dropout);
    }
    finish();
  }

private:
  MESHWORK_INLINE void copyKeys(int key) {
    copyRows<Engine, tile.keys, tile.threads>(kTile, {ops.k, ops.kStrides, shape.sequence, sample, key, kvHead}, shape);
  }

  template <int C> MESHWORK_INLINE void addValues(float (&scores)[R][C], const Block &block, const Dropout &dropout) {
    Kept<Engine, false, R, C> kept(shape, dropout, block);
    applySign(scores, shape);
    if (isPartial(shape, block))
      fillUnseen<Engine, false>(scores, shape, block, -infinity);
    softmax.add(scores, values, factorOf(shape));
    kept.apply(scores, shape, 1); // The factor is applied at the end.
    Engine::accumulate(values, scores, vTile, scratch);
  }

  MESHWORK_INLINE void finish() {
    float factors[R];
    float *lse = ops.lse + sample * ops.lseSample + head * ops.lseHead;
#pragma unroll
    for (int i = 0; i < R; ++i) {
      float sum = rowSum<Engine>(softmax.sum[i]);
      factors[i] = (shape.hasDropout ? shape.keepScale : 1.0f) / sum;
      int row = query + Engine::firstRow() + Engine::rowStep(i);
      if (row < shape.sequence && threadInBlock() % Engine::lanesOfRow == 0)
        lse[row] = (softmax.maximum[i] * factorOf(shape) + __nvvm_lg2_approx_f(sum)) * ln2;
    }
    Engine::store({ops.out, ops.outStrides, shape.sequence, sample, query, head}, values, factors, qTile, shape);
  }
};

template <int D> using ForwardMma = MmaEngine<D, forwardTile(true, D).queries / (forwardTile(true, D).threads / 2)>;
} // namespace

#define MESHWORK_FUNCTION(name, T, Engine)                                                                                       \
  ATTENTION_FUNCTION void meshwork_attention_##name(const T *q, const T *k, const T *v, const i32 *random, const i32 *firstHead, \
                                                    T *out, float *lse, ATTENTION_SIZES, ATTENTION_STRIDES(q),                   \
                                                    ATTENTION_STRIDES(k), ATTENTION_STRIDES(v), ATTENTION_STRIDES(out),          \
                                                    i64 lseSample, i64 lseHead, ATTENTION_RULES) {                               \
    Shape shape = ATTENTION_SHAPE;                                                                                               \
    ForwardOperands<T> ops{q, k, v, random, firstHead, out, lse,                                                                 \
                           {qSample, qPosition, qHead}, {kSample, kPosition, kHead},                                             \
                           {vSample, vPosition, vHead}, {outSample, outPosition, outHead},                                       \
                           lseSample, lseHead};                                                                                  \
    Forward<Engine>(shape, ops).run();                                                                                           \
  }
#define MESHWORK_CLASS(d)                                                                                                        \
  MESHWORK_FUNCTION(bf16_##d, Bf16, ForwardMma<d>)                                                                               \
  MESHWORK_FUNCTION(f32_##d, float, PlainEngine<d>)
ATTENTION_CLASSES(MESHWORK_CLASS)

} // namespace meshwork::attention
