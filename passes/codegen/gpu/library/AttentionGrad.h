// What the kernels of attention's gradient share. Let p be the probabilities
// before dropout, r those after it. Then
//   dv = r^T dout,  dr = dout v^T,  ds = scale * p * (dropped dr - delta),
//   dq = ds k,      dk = ds^T q,    delta = rows' sums of dout * out.
// With a cap of scores s, ds is that times 1 - (s / cap)^2.
// The kernels compute p again from lse. They leave `scale`, and the factor of
// dropout in dv, to the end, where sums are rounded.
#pragma once

#include "passes/codegen/gpu/library/AttentionDropout.h"
#include "passes/codegen/gpu/library/AttentionSoftmax.h"

namespace meshwork::attention {

template <typename T> struct GradOperands {
  const T *q, *k, *v, *out;
  const float *lse;
  const T *dout;
  Tables tables;
  void *dq, *dk, *dv;
  RowValues *rows;
  Strides qStrides, kStrides, vStrides, outStrides, doutStrides, dqStrides,
      dkStrides, dvStrides;
  i64 lseSample, lseHead;

  /// Those of one head, padded to paddedQueries.
  MESHWORK_INLINE RowValues *rowsOf(const Shape &shape, int sample,
                                    int head) const {
    return rows + (sample * shape.heads + head) *
                      blocksOf(shape.rows, paddedQueries) * paddedQueries;
  }
};

/// Scores to probabilities, one row's or column's lse for each.
MESHWORK_INLINE float probability(float score, float factor, float lse) {
  return exponential2(__builtin_fmaf(score, factor, -lse));
}

#define ATTENTION_GRAD_OPERANDS(T)                                             \
  GradOperands<T> {                                                            \
    q, k, v, out, lse, dout, ATTENTION_TABLES, dq, dk, dv, workspace,          \
        {qSample, qPosition, qHead}, {kSample, kPosition, kHead},              \
        {vSample, vPosition, vHead}, {outSample, outPosition, outHead},        \
        {doutSample, doutPosition, doutHead}, {dqSample, dqPosition, dqHead},  \
        {dkSample, dkPosition, dkHead}, {dvSample, dvPosition, dvHead},        \
        lseSample, lseHead                                                     \
  }

} // namespace meshwork::attention
