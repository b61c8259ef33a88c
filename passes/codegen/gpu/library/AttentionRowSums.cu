// The gradient's first kernel: what its others need of each row of scores.
#include "passes/codegen/gpu/library/AttentionCopy.h"
#include "passes/codegen/gpu/library/AttentionGrad.h"

namespace meshwork::attention {
namespace {

constexpr int lanesOfRow = 8, rowsAtOnce = rowSumThreads / lanesOfRow;

/// A lane's part of the sum of products over a row.
template <int N, typename T>
MESHWORK_INLINE float partialDot(const T *a, const T *b, i64 headDim) {
  float sum = 0;
  for (i64 i = threadInBlock() % lanesOfRow * N; i < headDim;
       i += lanesOfRow * N) {
    Vector<float, N> left = load<N>(a + i), right = load<N>(b + i);
#pragma unroll
    for (int e = 0; e < N; ++e)
      sum = __builtin_fmaf(left[e], right[e], sum);
  }
  return sum;
}

template <typename T>
MESHWORK_INLINE void sumRows(const Shape &shape, const GradOperands<T> &ops) {
  int blocks = static_cast<int>(blocksOf(shape.rows, paddedQueries));
  int pair = blockInGrid() / blocks,
      first = blockInGrid() % blocks * paddedQueries;
  int sample = pair / static_cast<int>(shape.heads),
      head = pair % static_cast<int>(shape.heads);
  HeadRows<const T> out(ops.out, ops.outStrides, shape.rows, sample, first,
                        head);
  HeadRows<const T> dout(ops.dout, ops.doutStrides, shape.rows, sample, first,
                         head);
  const float *lse =
      ops.lse + sample * ops.lseSample + head * ops.lseHead + first;
  RowValues *rows = ops.rowsOf(shape, sample, head) + first;
#pragma unroll
  for (int start = 0; start < paddedQueries; start += rowsAtOnce) {
    int row = start + threadInBlock() / lanesOfRow;
    bool exists = row < out.count;
    const T *a = out.data + row * out.stride,
            *b = dout.data + row * dout.stride;
    float sum = 0;
    if (exists)
      sum = shape.aligned ? partialDot<16 / sizeof(T)>(a, b, shape.headDim)
                          : partialDot<1>(a, b, shape.headDim);
#pragma unroll
    for (int step = 1; step < lanesOfRow; step *= 2)
      sum += __nvvm_shfl_sync_bfly_f32(~0u, sum, step, 31);
    if (exists && shape.hasPositions)
      exists = queryOf(shape, ops.tables, first + row) >= 0;
    if (exists && shape.hasKeys)
      exists = lse[row] != -infinity; // No rank has a key that it sees.
    if (threadInBlock() % lanesOfRow == 0)
      rows[row] =
          exists ? RowValues{lse[row] * log2e, sum} : RowValues{infinity, 0};
  }
}
} // namespace

ATTENTION_FUNCTION void
meshwork_attention_row_sums_bf16(ATTENTION_GRAD_PARAMETERS(Bf16)) {
  Shape shape = ATTENTION_SHAPE;
  sumRows(shape, ATTENTION_GRAD_OPERANDS(Bf16));
}
ATTENTION_FUNCTION void
meshwork_attention_row_sums_f32(ATTENTION_GRAD_PARAMETERS(float)) {
  Shape shape = ATTENTION_SHAPE;
  sumRows(shape, ATTENTION_GRAD_OPERANDS(float));
}

} // namespace meshwork::attention
