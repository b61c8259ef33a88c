// Graphs from descriptors.
#include "test/Support/Emulator/dnn/Graph.h"
#include <algorithm>

namespace meshwork::runtime::cuda::dnn {
namespace {
namespace at = attribute;

class Reader {
public:
  std::shared_ptr<const NumberedGraph> read(const Object &descriptor) {
    for (const Object *operation :
         descriptor.all<const Object *>(at::graphOperations))
      add(*operation);
    return std::make_shared<const NumberedGraph>(std::move(made));
  }

private:
  size_t tensor(const Object &operation, int attribute) {
    const Object &of = *finished(operation.one<const Object *>(attribute));
    auto uid = of.one<int64_t>(at::tensorUid);
    auto known = std::find(made.uids.begin(), made.uids.end(), uid);
    if (known != made.uids.end())
      return static_cast<size_t>(known - made.uids.begin());
    made.uids.push_back(uid);
    made.graph.tensors.push_back(tensorFrom(of));
    return made.uids.size() - 1;
  }

  static DnnTensor tensorFrom(const Object &of) {
    DnnTensor tensor;
    tensor.type = of.one<int>(at::tensorType);
    auto dims = of.all<int64_t>(at::tensorDimensions),
         strides = of.all<int64_t>(at::tensorStrides);
    if (dims.size() != 4 || strides.size() != 4)
      throw std::invalid_argument("a tensor has not four dims");
    std::copy(dims.begin(), dims.end(), tensor.dims.begin());
    std::copy(strides.begin(), strides.end(), tensor.strides.begin());
    tensor.lives = of.one<char>(at::tensorIsByValue) ? DnnTensor::Lives::asValue
                   : of.one<char>(at::tensorIsVirtual)
                       ? DnnTensor::Lives::between
                       : DnnTensor::Lives::inMemory;
    return tensor;
  }

  static const Object *finished(const Object *object) {
    if (!object || !object->isFinished)
      throw std::invalid_argument("a descriptor is not finished");
    return object;
  }

  void add(const Object &of) {
    finished(&of);
    switch (of.kind) {
    case descriptor::matmulOperation: {
      size_t a = tensor(of, at::matmulA), b = tensor(of, at::matmulB);
      return made.graph.matmul(a, b, tensor(of, at::matmulC));
    }
    case descriptor::reductionOperation: {
      const Object &mode =
          *finished(of.one<const Object *>(at::reductionDescriptor));
      size_t x = tensor(of, at::reductionX);
      return made.graph.reduce(mode.one<int>(at::reductionOperator), x,
                               tensor(of, at::reductionY));
    }
    case descriptor::reshapeOperation: {
      size_t x = tensor(of, at::reshapeX);
      return made.graph.reshape(x, tensor(of, at::reshapeY));
    }
    case descriptor::pointwiseOperation:
      return addPointwise(of);
    }
    throw std::invalid_argument("an operation is of a kind not modelled");
  }

  void addPointwise(const Object &of) {
    const Object &mode =
        *finished(of.one<const Object *>(at::pointwiseDescriptor));
    size_t x = tensor(of, at::pointwiseX);
    std::optional<size_t> b, t;
    if (of.has(at::pointwiseB))
      b = tensor(of, at::pointwiseB);
    if (of.has(at::pointwiseT))
      t = tensor(of, at::pointwiseT);
    made.graph.pointwise(mode.one<int>(at::pointwiseMode), x, b,
                         tensor(of, at::pointwiseY));
    DnnOperation &operation = made.graph.operations.back();
    operation.t = t;
    if (mode.has(at::pointwiseAxis))
      operation.axis = mode.one<int64_t>(at::pointwiseAxis);
  }

  NumberedGraph made;
};
} // namespace

std::shared_ptr<const NumberedGraph> graphFrom(const Object &descriptor) {
  return Reader().read(descriptor);
}

} // namespace meshwork::runtime::cuda::dnn
