// A problem of attention as the kernels of kernels/WgmmaAttention.h are told
// it.
#pragma once

#include "runtime/device/cuda/AttentionProblem.h"
#include "runtime/device/cuda/kernels/WgmmaAttention.h"

namespace meshwork::runtime::cuda {

inline int64_t blocksOf(int64_t count, int64_t ofBlock) {
  return (count + ofBlock - 1) / ofBlock;
}
/// Rows up to the last that is a token; all without runs.
int64_t tokenRows(const std::vector<layout::Range> &runs, int64_t rows);

WgmmaShape shapeOf(const AttentionProblem &problem,
                   const AttentionPlaces &places);
/// Of a result.
WgmmaWide wideOf(const AttentionTensor &tensor, DevicePtr at);
RowSumsTask rowSumsTask(const AttentionProblem &problem,
                        const AttentionPlaces &places, DevicePtr workspace);
/// What the gradient needs of the workspace.
int64_t rowValueBytesOf(const AttentionProblem &problem);

} // namespace meshwork::runtime::cuda
