#include "passes/interpreter/Blocks.h"

#include <algorithm>

using namespace mlir;

namespace meshwork::interpreter {

Tensor blockOf(const Tensor &whole, int64_t dim, int64_t begin, int64_t size) {
  std::vector<int64_t> shape = whole.getShape().vec();
  shape[dim] = size;
  Tensor block(shape);
  forEachIndex(shape, [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> from(index);
    from[dim] += begin;
    if (from[dim] < whole.getDimSize(dim))
      block.at(index) = whole.at(from);
  });
  return block;
}

Tensor joined(ArrayRef<Tensor> parts, int64_t dim, int64_t size) {
  std::vector<int64_t> shape = parts[0].getShape().vec();
  int64_t block = shape[dim];
  shape[dim] = size;
  Tensor whole(shape);
  forEachIndex(shape, [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> from(index);
    from[dim] = index[dim] % block;
    size_t part = index[dim] / block;
    if (part < parts.size())
      whole.at(index) = parts[part].at(from);
  });
  return whole;
}

Tensor combined(ArrayRef<Tensor> parts, plan::Reduction reduction) {
  Tensor result = parts[0];
  for (const Tensor &part : parts.drop_front())
    for (int64_t i = 0; i < result.size(); ++i)
      result[i] = reduction == plan::Reduction::sum
                      ? result[i] + part[i]
                      : std::max<double>(result[i], part[i]);
  return result;
}

} // namespace meshwork::interpreter
