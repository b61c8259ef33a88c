// Attention's gradient, dq: a thread block keeps queries and their dout, and
// walks the keys that they see. The next values arrive while dq is summed, keys
// while dout times values runs.
#include "passes/codegen/gpu/library/AttentionGrad.h"
#include "passes/codegen/gpu/library/AttentionMma.h"
#include "passes/codegen/gpu/library/AttentionPlain.h"

namespace meshwork::attention {
namespace {

template <typename Engine> class QueryGrad {
  using T = typename Engine::Element;
  static constexpr Tile tile = queryGradTile(Engine::bf16, Engine::d);
  static constexpr int R = Engine::rows, C = Engine::columns(tile.keys),
                       N = Engine::columns(Engine::d);

  const Shape &shape;
  const GradOperands<T> &ops;
  int sample, head, kvHead, query, columns;
  u32 qTile, doutTile, kTile, vTile, scratch;
  float lse[R], delta[R];
  float dq[R][N];

public:
  MESHWORK_INLINE QueryGrad(const Shape &shape, const GradOperands<T> &ops)
      : shape(shape), ops(ops) {
    int blocks = static_cast<int>(blocksOf(shape.rows, tile.queries));
    int pair = blockInGrid() / blocks, block = blockInGrid() % blocks;
    // As in the forward pass: long ones first.
    query = (shape.causal ? blocks - 1 - block : block) * tile.queries;
    sample = pair / static_cast<int>(shape.heads);
    head = pair % static_cast<int>(shape.heads);
    kvHead = head / static_cast<int>(shape.heads / shape.kvHeads);
    columns = endOfKeys(shape, ops.tables);
    qTile = sharedAddress();
    doutTile = qTile + Engine::tileBytes(tile.queries);
    kTile = doutTile + Engine::tileBytes(tile.queries);
    vTile = kTile + Engine::tileBytes(tile.keys);
    scratch = vTile + Engine::tileBytes(tile.keys);
    setAll(dq, 0);
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
    copyRows<Engine, tile.queries, tile.threads>(
        doutTile, {ops.dout, ops.doutStrides, shape.rows, sample, query, head},
        shape);
    copyValues(key);
    loadRows();
    for (; key < keys.end; key += tile.keys) {
      float scores[R][C], dprob[R][C];
      finishCopies(); // of values; and all are done with the keys before
      copyRows<Engine, tile.keys, tile.threads>(
          kTile, {ops.k, ops.kStrides, columns, sample, key, kvHead}, shape);
      setAll(dprob, 0);
      Engine::multiply(dprob, doutTile, vTile);
      finishCopies(); // of keys; and all are done with the values
      if (key + tile.keys < keys.end)
        copyValues(key + tile.keys);
      setAll(scores, 0);
      Engine::multiply(scores, qTile, kTile);
      toScoreGrads(scores, dprob, {query, tile.queries, key, tile.keys});
      Engine::accumulate(dq, scores, kTile, scratch);
    }
  }

  MESHWORK_INLINE void copyValues(int key) {
    copyRows<Engine, tile.keys, tile.threads>(
        vTile, {ops.v, ops.vStrides, columns, sample, key, kvHead}, shape);
  }

  MESHWORK_INLINE void loadRows() {
    const RowValues *rows = ops.rowsOf(shape, sample, head) + query +
                            Engine::firstRow(threadInBlock());
#pragma unroll
    for (int i = 0; i < R; ++i) {
      RowValues values = rows[Engine::rowStep(i)];
      lse[i] = values.x;
      delta[i] = values.y;
    }
  }

  /// `scores` become their gradients without `scale`; `dprob` is used up.
  MESHWORK_INLINE void toScoreGrads(float (&scores)[R][C], float (&dprob)[R][C],
                                    const Block &block) {
    drop<Engine>(dprob, shape, Dropout(shape, ops.tables, sample, head), block,
                 shape.keepScale);
    toScores(scores, shape);
#pragma unroll
    for (int i = 0; i < R; ++i)
#pragma unroll
      for (int j = 0; j < C; ++j)
        scores[i][j] = probability(scores[i][j], factorOf(shape), lse[i]) *
                       (dprob[i][j] - delta[i]) * slopeOf(scores[i][j], shape);
    if (mask().isPartial(block))
      fillUnseen<Engine, false>(scores, mask(), block, 0);
  }

  MESHWORK_INLINE void finish() {
    float factors[R];
#pragma unroll
    for (int i = 0; i < R; ++i)
      factors[i] = shape.scale;
    storeRows<Engine>({ops.dq, ops.dqStrides, shape.rows, sample, query, head},
                      dq, factors, qTile, shape);
  }
};

template <int D>
using QueryGradMma = MmaEngine<D, queryGradTile(true, D).queries /
                                      (queryGradTile(true, D).threads / 2)>;
} // namespace

#define MESHWORK_FUNCTION(name, T, Engine)                                     \
  ATTENTION_FUNCTION void meshwork_attention_grad_queries_##name(              \
      ATTENTION_GRAD_PARAMETERS(T)) {                                          \
    Shape shape = ATTENTION_SHAPE;                                             \
    GradOperands<T> ops = ATTENTION_GRAD_OPERANDS(T);                          \
    QueryGrad<Engine>(shape, ops).run();                                       \
  }
#define MESHWORK_CLASS(d)                                                      \
  MESHWORK_FUNCTION(bf16_##d, Bf16, QueryGradMma<d>)                           \
  MESHWORK_FUNCTION(f32_##d, float, PlainEngine<d>)
ATTENTION_CLASSES(MESHWORK_CLASS)

} // namespace meshwork::attention
