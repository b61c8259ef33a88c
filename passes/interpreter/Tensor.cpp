#include "passes/interpreter/Tensor.h"
#include "dialects/transformer/Transformer.h"

#include <cassert>
#include <functional>
#include <numeric>

using namespace mlir;

namespace meshwork::interpreter {
namespace {
int64_t product(ArrayRef<int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1},
                         std::multiplies<>());
}

SmallVector<int64_t> stridesOf(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i])
    strides[i] = stride;
  return strides;
}
} // namespace

Tensor::Tensor(std::vector<int64_t> shape, double value)
    : shape(std::move(shape)), elements(product(this->shape), value) {}

Tensor::Tensor(std::vector<int64_t> shape, std::vector<double> elements)
    : shape(std::move(shape)), elements(std::move(elements)) {
  assert(product(this->shape) == size() &&
         "as many elements as the shape says");
}

Tensor Tensor::zeros(Type type) {
  return Tensor(cast<RankedTensorType>(type).getShape().vec());
}

SmallVector<int64_t> Tensor::getStrides() const { return stridesOf(shape); }

void forEachIndex(ArrayRef<int64_t> shape,
                  function_ref<void(ArrayRef<int64_t>)> visit) {
  SmallVector<int64_t> index(shape.size(), 0);
  for (int64_t left = product(shape); left > 0; --left) {
    visit(index);
    for (size_t i = shape.size(); i-- > 0;) {
      if (++index[i] < shape[i])
        break;
      index[i] = 0;
    }
  }
}

SmallVector<int64_t> stridesWithin(RankedTensorType part,
                                   RankedTensorType space) {
  SmallVector<int64_t> own = stridesOf(part.getShape());
  SmallVector<int64_t> strides(space.getRank(), 0);
  transformer::DimsAttr dims = transformer::dimsOf(space);
  for (auto [i, name] : llvm::enumerate(transformer::dimsOf(part).getNames()))
    strides[dims.find(name)] = own[i];
  return strides;
}

} // namespace meshwork::interpreter
