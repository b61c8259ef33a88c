#include "runtime/device/cuda/WgmmaTasks.h"
#include <algorithm>

namespace meshwork::runtime::cuda {
namespace {
/// Of all `rows`, where there are no runs.
WgmmaRuns runsOf(const std::vector<layout::Range> &ranges, int64_t rows) {
  WgmmaRuns runs{};
  runs.count[0] = static_cast<int>(rows);
  for (size_t i = 0; i < ranges.size(); ++i) {
    runs.begin[i] = static_cast<int>(ranges[i].begin);
    runs.count[i] = static_cast<int>(ranges[i].count);
    runs.offset[i] = static_cast<int>(ranges[i].offset);
  }
  return runs;
}
} // namespace

int64_t tokenRows(const std::vector<layout::Range> &ranges, int64_t rows) {
  return ranges.empty() ? rows : ranges.back().offset + ranges.back().count;
}

WgmmaShape shapeOf(const AttentionProblem &problem,
                   const AttentionPlaces &places) {
  WgmmaShape shape{};
  int64_t keys = problem.totalKeys ? problem.totalKeys : problem.columns();
  shape.rows = static_cast<int>(problem.rows());
  shape.columns = static_cast<int>(problem.columns());
  shape.sequence = static_cast<int>(keys);
  shape.heads = static_cast<int>(problem.heads());
  shape.kvHeads = static_cast<int>(problem.kvHeads());
  shape.window = static_cast<int>(std::min(problem.window, keys));
  shape.causal = problem.causal;
  shape.scale = problem.scale;
  shape.queries = runsOf(problem.queries, problem.rows());
  shape.keys = runsOf(problem.keys, problem.columns());
  shape.documents = problem.documents ? places.documents : 0;
  return shape;
}

WgmmaWide wideOf(const AttentionTensor &tensor, DevicePtr at) {
  return {tensor.isF32 ? at : 0,
          {tensor.strides[0], tensor.strides[1], tensor.strides[2]},
          static_cast<int>(tensor.dims[2]),
          static_cast<int>(tensor.dims[3])};
}

RowSumsTask rowSumsTask(const AttentionProblem &problem,
                        const AttentionPlaces &places, DevicePtr workspace) {
  RowSumsTask task{};
  task.out = places.out;
  task.dout = places.dout;
  task.lse = places.lse;
  task.rowValues = workspace;
  for (int i = 0; i < 3; ++i) {
    task.outStrides[i] = problem.out.strides[i];
    task.doutStrides[i] = problem.dout.strides[i];
  }
  for (int i = 0; i < 2; ++i)
    task.lseStrides[i] = problem.lseStrides[i];
  task.rows = static_cast<int>(problem.rows());
  task.queries = runsOf(problem.queries, problem.rows());
  task.heads = static_cast<int>(problem.heads());
  task.headDim = static_cast<int>(problem.headDim());
  return task;
}

int64_t rowValueBytesOf(const AttentionProblem &problem) {
  return problem.samples() * problem.heads() *
         blocksOf(problem.rows(), wgmmaRows) * wgmmaRows * rowValueBytes;
}

} // namespace meshwork::runtime::cuda
