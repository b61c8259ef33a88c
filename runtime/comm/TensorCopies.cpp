#include "runtime/comm/TensorCopies.h"
#include <algorithm>

namespace meshwork::runtime {
namespace {
/// Work is handed to threads in chunks of this many elements.
constexpr int64_t chunkElements = 16384;
} // namespace

TensorCopies::TensorCopies(const std::vector<Strided> &from,
                           const std::vector<Strided> &to) {
  for (uint32_t i = 0; i < from.size(); ++i) {
    boxes.emplace_back(from[i].shape, from[i].strides, to[i].strides, 0, 0);
    for (int64_t at = 0; at < boxes[i].elements(); at += chunkElements)
      chunks.push_back(
          {i, at, std::min(boxes[i].elements(), at + chunkElements)});
  }
}

void TensorCopies::run(const std::vector<Strided> &from,
                       const std::vector<Strided> &to,
                       ParallelFor parallel) const {
  auto copy = [&](const Chunk &chunk) {
    const Strided &src = from[chunk.tensor], &dst = to[chunk.tensor];
    int64_t width = src.width();
    boxes[chunk.tensor].forEachRun(chunk.begin, chunk.end, [&](const Run &run) {
      copyRun(src.data + run.src * width, run.srcStride,
              dst.data + run.dst * width, run.dstStride, run.count, width);
    });
  };
  parallel(static_cast<int64_t>(chunks.size()),
           [&](int64_t begin, int64_t end) {
             for (int64_t i = begin; i < end; ++i)
               copy(chunks[static_cast<size_t>(i)]);
           });
}

std::vector<Strided> packed(const std::vector<Strided> &like, std::byte *data) {
  std::vector<Strided> all = like;
  for (Strided &one : all) {
    one.data = data;
    int64_t stride = 1;
    for (size_t dim = one.shape.size(); dim-- > 0;) {
      one.strides[dim] = stride;
      stride *= one.shape[dim];
    }
    if (data) // else for its strides alone
      data += stride * one.width();
  }
  return all;
}

bool isDense(const Strided &tensor) {
  Strided dense = packed({tensor}, tensor.data)[0];
  bool same = true;
  for (size_t dim = 0; dim < tensor.shape.size(); ++dim)
    same &= tensor.shape[dim] == 1 || tensor.strides[dim] == dense.strides[dim];
  return same;
}

size_t packedBytes(const std::vector<Strided> &tensors) {
  int64_t bytes = 0;
  for (const Strided &one : tensors)
    bytes += one.elements() * one.width();
  return static_cast<size_t>(bytes);
}

} // namespace meshwork::runtime
