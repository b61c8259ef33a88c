// Graphs, one operation after the other.
#include "runtime/machine/Bf16.h"
#include "test/Support/Emulator/dnn/Graph.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace meshwork::runtime::cuda::dnn {
namespace {
namespace mode = pointwiseMode;

int64_t offsetOf(const Dims4 &index, const Dims4 &strides) {
  int64_t offset = 0;
  for (size_t i = 0; i < 4; ++i)
    offset += index[i] * strides[i];
  return offset;
}

template <typename Body> void forEach(const Dims4 &dims, Body body) {
  Dims4 i;
  for (i[0] = 0; i[0] < dims[0]; ++i[0])
    for (i[1] = 0; i[1] < dims[1]; ++i[1])
      for (i[2] = 0; i[2] < dims[2]; ++i[2])
        for (i[3] = 0; i[3] < dims[3]; ++i[3])
          body(i);
}

/// Without gaps, whatever the strides of its tensor are.
struct Array {
  Dims4 dims{};
  std::vector<double> values;

  /// A dim of size 1 is there for every index, a head for its whole group.
  double &operator()(const Dims4 &index, const Dims4 &space) {
    int64_t offset = 0;
    for (size_t i = 0; i < 4; ++i) {
      bool isGroup = i == 1 && space[i] > dims[i];
      int64_t place = isGroup        ? index[i] / (space[i] / dims[i])
                      : dims[i] == 1 ? 0
                                     : index[i];
      offset = offset * dims[i] + place;
    }
    return values[static_cast<size_t>(offset)];
  }
};

double rounded(double value, int type) {
  switch (type) {
  case dataType::bf16:
    return fromBf16(toBf16(static_cast<float>(value)));
  case dataType::f32:
    return static_cast<float>(value);
  default:
    return value; // whole numbers
  }
}

double load(const void *at, int64_t offset, int type) {
  switch (type) {
  case dataType::bf16:
    return fromBf16(static_cast<const uint16_t *>(at)[offset]);
  case dataType::f32:
    return static_cast<const float *>(at)[offset];
  default:
    return static_cast<const int32_t *>(at)[offset];
  }
}

void store(void *at, int64_t offset, int type, double value) {
  if (type == dataType::bf16)
    static_cast<uint16_t *>(at)[offset] = toBf16(static_cast<float>(value));
  else
    static_cast<float *>(at)[offset] = static_cast<float>(value);
}

double apply(const DnnOperation &of, double x, double b, double t,
             const Dims4 &index) {
  switch (of.mode) {
  case mode::add:
    return x + b;
  case mode::sub:
    return x - b;
  case mode::mul:
    return x * b;
  case mode::div:
    return x / b;
  case mode::exp:
    return std::exp(x);
  case mode::log:
    return std::log(x);
  case mode::identity:
    return x;
  case mode::greater:
    return x > b;
  case mode::greaterOrEqual:
    return x >= b;
  case mode::index:
    return static_cast<double>(index[static_cast<size_t>(of.axis.value())]);
  case mode::select:
    return t != 0 ? x : b;
  }
  throw std::invalid_argument("a pointwise mode is not modelled");
}

class Interpreter {
public:
  Interpreter(const DnnGraph &graph, const std::vector<void *> &at)
      : graph(graph), at(at), arrays(graph.tensors.size()) {}

  void run() {
    for (const DnnOperation &operation : graph.operations) {
      run(operation);
      keep(operation.y);
    }
  }

private:
  /// What no operation has made comes from memory.
  Array &array(size_t number) {
    Array &found = arrays[number];
    if (!found.values.empty())
      return found;
    const DnnTensor &tensor = graph.tensors[number];
    if (tensor.lives == DnnTensor::Lives::between)
      throw std::invalid_argument("a tensor is read before it is made");
    clear(number);
    forEach(tensor.dims, [&](const Dims4 &i) {
      found(i, tensor.dims) =
          load(at[number], offsetOf(i, tensor.strides), tensor.type);
    });
    return found;
  }

  Array &clear(size_t number) {
    Array &made = arrays[number];
    made.dims = graph.tensors[number].dims;
    made.values.assign(static_cast<size_t>(made.dims[0] * made.dims[1] *
                                           made.dims[2] * made.dims[3]),
                       0);
    return made;
  }

  void keep(size_t number) {
    const DnnTensor &tensor = graph.tensors[number];
    Array &made = arrays[number];
    for (double &value : made.values)
      value = rounded(value, tensor.type);
    if (tensor.lives != DnnTensor::Lives::inMemory)
      return;
    forEach(tensor.dims, [&](const Dims4 &i) {
      store(at[number], offsetOf(i, tensor.strides), tensor.type,
            made(i, tensor.dims));
    });
  }

  void run(const DnnOperation &of) {
    switch (of.kind) {
    case DnnOperation::Kind::matmul:
      return matmul(of);
    case DnnOperation::Kind::pointwise:
      return pointwise(of);
    case DnnOperation::Kind::reduction:
      return reduce(of);
    case DnnOperation::Kind::reshape:
      return reshape(of);
    }
  }

  void matmul(const DnnOperation &of) {
    Array &a = array(of.x), &b = array(*of.b), &y = clear(of.y);
    if (a.dims[3] != b.dims[2] || a.dims[2] != y.dims[2] ||
        b.dims[3] != y.dims[3])
      throw std::invalid_argument("a product's sizes do not fit");
    Dims4 aSpace = y.dims, bSpace = y.dims;
    aSpace[3] = bSpace[2] = a.dims[3];
    forEach(y.dims, [&](const Dims4 &i) {
      double sum = 0;
      for (int64_t k = 0; k < a.dims[3]; ++k)
        sum +=
            a({i[0], i[1], i[2], k}, aSpace) * b({i[0], i[1], k, i[3]}, bSpace);
      y(i, y.dims) = sum;
    });
  }

  void pointwise(const DnnOperation &of) {
    Array &x = array(of.x), *b = of.b ? &array(*of.b) : nullptr,
          *t = of.t ? &array(*of.t) : nullptr, &y = clear(of.y);
    forEach(y.dims, [&](const Dims4 &i) {
      y(i, y.dims) = apply(of, x(i, y.dims), b ? (*b)(i, y.dims) : 0,
                           t ? (*t)(i, y.dims) : 0, i);
    });
  }

  void reduce(const DnnOperation &of) {
    Array &x = array(of.x), &y = clear(of.y);
    bool isMax = of.mode == reductionOperator::max;
    if (isMax)
      std::fill(y.values.begin(), y.values.end(),
                -std::numeric_limits<double>::infinity());
    forEach(x.dims, [&](const Dims4 &i) {
      double &result = y(i, x.dims), value = x(i, x.dims);
      result = isMax ? std::max(result, value) : result + value;
    });
  }

  /// The same places in memory, read with other strides.
  void reshape(const DnnOperation &of) {
    const DnnTensor &from = graph.tensors[of.x], &to = graph.tensors[of.y];
    Array &x = array(of.x), &y = clear(of.y);
    std::map<int64_t, double> places;
    forEach(from.dims, [&](const Dims4 &i) {
      places[offsetOf(i, from.strides)] = x(i, from.dims);
    });
    forEach(to.dims, [&](const Dims4 &i) {
      y(i, to.dims) = places.at(offsetOf(i, to.strides));
    });
  }

  const DnnGraph &graph;
  const std::vector<void *> &at;
  std::vector<Array> arrays;
};
} // namespace

void interpret(const DnnGraph &graph, const std::vector<void *> &at) {
  Interpreter(graph, at).run();
}

size_t spanBytes(const DnnTensor &tensor) {
  Dims4 last = tensor.dims;
  for (int64_t &i : last)
    --i;
  size_t width = tensor.type == dataType::bf16 ? 2 : 4;
  return static_cast<size_t>(offsetOf(last, tensor.strides) + 1) * width;
}

} // namespace meshwork::runtime::cuda::dnn
