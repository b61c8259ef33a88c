// Attention's gradient, dk and dv. A thread block keeps keys and their values,
// and walks the queries that see them, of all query heads of the key head, in
// order. Nothing else writes these rows, so nothing is added atomically. Scores
// are transposed, rows are keys: r^T and ds^T then are left operands.
#include "passes/codegen/gpu/library/AttentionGrad.h"
#include "passes/codegen/gpu/library/AttentionMma.h"
#include "passes/codegen/gpu/library/AttentionPlain.h"

namespace meshwork::attention {
namespace {

/// `queriesAtOnce`: those whose scores are in registers at a time.
template <typename Engine, int queriesAtOnce> class KeyGrad {
  using T = typename Engine::Element;
  static constexpr Tile tile = keyGradTile(Engine::bf16, Engine::d);
  static constexpr int parts = keyGradParts(Engine::bf16, Engine::d),
                       partColumns = Engine::d / parts;
  static constexpr int step = Engine::bf16 ? queriesAtOnce : tile.queries;
  static constexpr int R = Engine::rows, C = Engine::columns(step),
                       N = Engine::columns(partColumns);
  // Operands of a block of queries: q, dout, RowValues; two of them where the
  // next one arrives while this one is used.
  static constexpr int buffers = Engine::bf16 ? 2 : 1;
  static constexpr int rowBytes =
      tile.queries * static_cast<int>(sizeof(RowValues));
  static constexpr int queryBytes = Engine::tileBytes(tile.queries);
  static constexpr int bufferBytes = 2 * queryBytes + rowBytes;

  const Shape &shape;
  const GradOperands<T> &ops;
  int sample, kvHead, key, part, columns;
  u32 kTile, vTile, stream, scratch;
  float dk[R][N], dv[R][N];

public:
  MESHWORK_INLINE KeyGrad(const Shape &shape, const GradOperands<T> &ops)
      : shape(shape), ops(ops) {
    int blocks = static_cast<int>(blocksOf(shape.columns, tile.keys)) * parts;
    int pair = blockInGrid() / blocks, block = blockInGrid() % blocks;
    // With a causal mask the first keys are seen by the most queries.
    part = block % parts;
    key = block / parts * tile.keys;
    sample = pair / static_cast<int>(shape.kvHeads);
    kvHead = pair % static_cast<int>(shape.kvHeads);
    columns = endOfKeys(shape, ops.tables);
    kTile = sharedAddress();
    vTile = kTile + Engine::tileBytes(tile.keys);
    stream = vTile + Engine::tileBytes(tile.keys);
    scratch = stream + buffers * bufferBytes;
    setAll(dk, 0);
    setAll(dv, 0);
  }

  MESHWORK_INLINE void run() {
    int endKey = smaller(key + tile.keys, columns);
    Range queries = mask().queriesOf(key, endKey),
          keys = mask().keysOfColumns(key, endKey);
    int first = mask().nextSeeing(queries.first / tile.queries * tile.queries,
                                  queries.end, tile.queries, keys);
    if (!shape.hasPositions || first < queries.end)
      walk({first, queries.end}, keys, endKey);
    finish();
  }

private:
  MESHWORK_INLINE Mask mask() const { return Mask(shape, ops.tables, sample); }

  MESHWORK_INLINE void walk(const Range &queries, const Range &keys,
                            int endKey) {
    int group = static_cast<int>(shape.heads / shape.kvHeads),
        head = kvHead * group, endHead = head + group;
    copyRows<Engine, tile.keys, tile.threads>(
        kTile, {ops.k, ops.kStrides, columns, sample, key, kvHead}, shape);
    copyRows<Engine, tile.keys, tile.threads>(
        vTile, {ops.v, ops.vStrides, columns, sample, key, kvHead}, shape);
    copyQueries(stream, head, queries.first);
    int endQuery = mask().endOfDocuments(queries, tile.queries,
                                         endKey); // while copies arrive
    int query = queries.first, turn = 0;
    while (head < endHead) {
      int nextQuery = mask().nextSeeing(query + tile.queries, endQuery,
                                        tile.queries, keys),
          nextHead = head;
      if (nextQuery >= endQuery) {
        nextQuery = queries.first;
        ++nextHead;
      }
      finishCopies(); // and all are done with the other buffer
      if (buffers == 2 && nextHead < endHead)
        copyQueries(stream + (turn ^ 1) * bufferBytes, nextHead, nextQuery);
      addQueries(stream + turn * bufferBytes, head, query);
      if (buffers == 1) {
        meetBlock();
        if (nextHead < endHead)
          copyQueries(stream, nextHead, nextQuery);
      }
      turn ^= buffers - 1;
      query = nextQuery;
      head = nextHead;
    }
  }

  MESHWORK_INLINE void copyQueries(u32 to, int head, int query) {
    copyRows<Engine, tile.queries, tile.threads>(
        to, {ops.q, ops.qStrides, shape.rows, sample, query, head}, shape);
    copyRows<Engine, tile.queries, tile.threads>(
        to + queryBytes,
        {ops.dout, ops.doutStrides, shape.rows, sample, query, head}, shape);
    const RowValues *rows = ops.rowsOf(shape, sample, head) + query;
    u32 chunk = fresh(threadInBlock());
    if (chunk < rowBytes / 16)
      startCopy(to + 2 * queryBytes + chunk * 16, rows + chunk * 2, true);
  }

  MESHWORK_INLINE void addQueries(u32 buffer, int head, int query) {
#pragma unroll 1
    for (int start = 0; start < tile.queries; start += step) {
      u32 q = buffer + Engine::tileBytes(start);
      u32 rows =
          buffer + 2 * queryBytes + start * static_cast<u32>(sizeof(RowValues));
      addColumns(q, q + queryBytes, rows, head,
                 {query + start, step, key, tile.keys});
    }
  }

  /// Queries of `block`, a part of those that have been copied.
  MESHWORK_INLINE void addColumns(u32 q, u32 dout, u32 rowValues, int head,
                                  const Block &block) {
    const RowValues *rows = sharedPointer<RowValues>(rowValues) +
                            Engine::firstColumn(fresh(threadInBlock()));
    bool partial = mask().isPartial(block);
    float prob[R][C], other[R][C], slopes[R][C]; // the last with a cap only
    setAll(prob, 0);
    Engine::multiply(prob, kTile, q);
    toScores(prob, shape);
    setSlopes(slopes, prob);
    toProbabilities(prob, rows, head, block);
    if (partial)
      fillUnseen<Engine, true>(prob, mask(), block, 0);
#pragma unroll
    for (int i = 0; i < R; ++i)
#pragma unroll
      for (int j = 0; j < C; ++j)
        other[i][j] = isDropped(prob[i][j])
                          ? 0.0f
                          : prob[i][j]; // Its factor is applied at the end.
    Engine::accumulate(dv, other, dout, scratch, part * (partColumns / 16));
    setAll(other, 0);
    Engine::multiply(other, vTile, dout);
    toScoreGrads(other, prob, rows, slopes);
    if (partial)
      fillUnseen<Engine, true>(other, mask(), block,
                               0); // Zero times NaN is not zero.
    Engine::accumulate(dk, other, q, scratch, part * (partColumns / 16));
  }

  MESHWORK_INLINE void setSlopes(float (&slopes)[R][C],
                                 const float (&scores)[R][C]) {
    if (shape.cap == 0)
      return;
#pragma unroll
    for (int i = 0; i < R; ++i)
#pragma unroll
      for (int j = 0; j < C; ++j)
        slopes[i][j] = slopeOf(scores[i][j], shape);
  }

  /// What is dropped becomes negative: one register less than a mask.
  MESHWORK_INLINE void toProbabilities(float (&scores)[R][C],
                                       const RowValues *rows, int head,
                                       const Block &block) {
#pragma unroll
    for (int j = 0; j < C; ++j)
#pragma unroll
      for (int i = 0; i < R; ++i)
        scores[i][j] = probability(scores[i][j], factorOf(shape),
                                   rows[Engine::columnStep(j)].x);
    if (!shape.hasDropout)
      return;
    Kept<Engine, true, R, C> kept(
        shape, Dropout(shape, ops.tables, sample, head), block);
#pragma unroll
    for (int i = 0; i < R; ++i)
#pragma unroll
      for (int j = 0; j < C; ++j)
        scores[i][j] = kept.keeps(i, j) ? scores[i][j] : -scores[i][j];
  }
  MESHWORK_INLINE bool isDropped(float prob) const {
    return shape.hasDropout && prob < 0;
  }

  /// From products of dout and values; `scale` is applied at the end.
  MESHWORK_INLINE void toScoreGrads(float (&dprob)[R][C],
                                    const float (&prob)[R][C],
                                    const RowValues *rows,
                                    const float (&slopes)[R][C]) {
#pragma unroll
    for (int j = 0; j < C; ++j)
#pragma unroll
      for (int i = 0; i < R; ++i) {
        float delta = rows[Engine::columnStep(j)].y,
              difference =
                  shape.hasDropout
                      ? __builtin_fmaf(dprob[i][j], shape.keepScale, -delta)
                      : dprob[i][j] - delta;
        dprob[i][j] = prob[i][j] * (isDropped(prob[i][j]) ? delta : difference);
        if (shape.cap > 0)
          dprob[i][j] *= slopes[i][j];
      }
  }

  MESHWORK_INLINE void finish() {
    float dkFactors[R], dvFactors[R];
#pragma unroll
    for (int i = 0; i < R; ++i) {
      dkFactors[i] = shape.scale;
      dvFactors[i] = shape.hasDropout ? shape.keepScale : 1.0f;
    }
    storeRows<Engine>(
        {ops.dk, ops.dkStrides, shape.columns, sample, key, kvHead}, dk,
        dkFactors, kTile, shape, part * partColumns);
    storeRows<Engine>(
        {ops.dv, ops.dvStrides, shape.columns, sample, key, kvHead}, dv,
        dvFactors, vTile, shape, part * partColumns);
  }
};

template <int D>
using KeyGradMma = MmaEngine<D, keyGradTile(true, D).keys /
                                    (keyGradTile(true, D).threads / 2)>;
} // namespace

#define MESHWORK_FUNCTION(name, T, Engine)                                     \
  ATTENTION_FUNCTION void meshwork_attention_grad_keys_##name(                 \
      ATTENTION_GRAD_PARAMETERS(T)) {                                          \
    Shape shape = ATTENTION_SHAPE;                                             \
    GradOperands<T> ops = ATTENTION_GRAD_OPERANDS(T);                          \
    /* Dropout needs registers, and most of the time: less of it at once costs \
     * little. So does a cap. */                                               \
    if (shape.hasDropout || shape.cap > 0)                                     \
      KeyGrad<Engine, 16>(shape, ops).run();                                   \
    else                                                                       \
      KeyGrad<Engine, 32>(shape, ops).run();                                   \
  }
#define MESHWORK_CLASS(d)                                                      \
  MESHWORK_FUNCTION(bf16_##d, Bf16, KeyGradMma<d>)                             \
  MESHWORK_FUNCTION(f32_##d, float, PlainEngine<d>)
ATTENTION_CLASSES(MESHWORK_CLASS)

} // namespace meshwork::attention
