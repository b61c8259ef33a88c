// A row's scores at its choices, and the gradient of that.
#include "passes/codegen/gpu/library/Device.h"

namespace meshwork {

/// picked[r, i] = scores[r, choices[r, i]], 0 where that is no expert; a thread
/// for each i < k of each r < rows. Strides in elements.
DEVICE_FUNCTION void meshwork_pick(const float *scores, const i32 *choices,
                                   float *picked, i64 threads, i64 rows,
                                   i64 experts, i64 k, i64 scoreStride,
                                   i64 choiceStride, i64 pickedStride) {
  i64 index = blockInGrid() * threads + threadInBlock(), row = index / k,
      i = index - row * k;
  if (row >= rows)
    return;
  i64 expert = choices[row * choiceStride + i];
  bool isThere = static_cast<u64>(expert) < static_cast<u64>(experts);
  picked[row * pickedStride + i] =
      isThere ? scores[row * scoreStride + expert] : 0.0f;
}

/// scores[r, e] = the sum of picked[r, i] over the i with choices[r, i] = e, in
/// their order; a thread for each e < experts of each r < rows.
DEVICE_FUNCTION void meshwork_pick_grad(const i32 *choices, const float *picked,
                                        float *scores, i64 threads, i64 rows,
                                        i64 experts, i64 k, i64 scoreStride,
                                        i64 choiceStride, i64 pickedStride) {
  i64 index = blockInGrid() * threads + threadInBlock(), row = index / experts,
      expert = index - row * experts;
  if (row >= rows)
    return;
  float sum = 0;
  for (i64 i = 0; i < k; ++i)
    if (choices[row * choiceStride + i] == expert)
      sum += picked[row * pickedStride + i];
  scores[row * scoreStride + expert] = sum;
}

} // namespace meshwork
