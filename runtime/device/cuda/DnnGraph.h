// A graph of operations for cuDNN, as data: tensors of four dims and what makes
// one of others. Its engines know graphs by their shape, so the operations and
// the order of their operands matter, beyond what they compute.
//
//   DnnGraph graph;
//   size_t a = graph.memory(...), b = graph.memory(...), c = graph.memory(...);
//   graph.matmul(a, b, c);
#pragma once

#include "runtime/device/cuda/DnnApi.h"
#include <array>
#include <bit>
#include <optional>
#include <vector>

namespace meshwork::runtime::cuda {

using Dims4 = std::array<int64_t, 4>;

/// Elements from one place to the next where dims lie without gaps.
inline Dims4 denseStrides(const Dims4 &dims) {
  return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
}

/// Its unique id is its place in the graph.
struct DnnTensor {
  enum class Lives { inMemory, asValue, between } lives;
  int type; // dnn::dataType
  Dims4 dims, strides;
  uint32_t bits = 0; // of a value
  bool operator==(const DnnTensor &) const = default;
};

struct DnnOperation {
  enum class Kind { matmul, pointwise, reduction, reshape } kind;
  int mode = 0;      // of the kind
  int precision = 0; // dnn::dataType in which it computes
  std::optional<int64_t> axis = {};
  size_t x, y;                          // read, written
  std::optional<size_t> b = {}, t = {}; // read too: second operand, predicate
  bool operator==(const DnnOperation &) const = default;
};

class DnnGraph {
public:
  size_t memory(int type, const Dims4 &dims, const Dims4 &strides) {
    return add({DnnTensor::Lives::inMemory, type, dims, strides});
  }
  size_t value(float of) {
    return add({DnnTensor::Lives::asValue,
                dnn::dataType::f32,
                {1, 1, 1, 1},
                {1, 1, 1, 1},
                std::bit_cast<uint32_t>(of)});
  }
  size_t value(int32_t of) {
    return add({DnnTensor::Lives::asValue,
                dnn::dataType::i32,
                {1, 1, 1, 1},
                {1, 1, 1, 1},
                std::bit_cast<uint32_t>(of)});
  }
  /// Of one operation for others, nowhere in memory.
  size_t between(int type, const Dims4 &dims) {
    return add({DnnTensor::Lives::between, type, dims, denseStrides(dims)});
  }
  /// With strides that are not dense.
  size_t between(int type, const Dims4 &dims, const Dims4 &strides) {
    return add({DnnTensor::Lives::between, type, dims, strides});
  }

  void matmul(size_t a, size_t b, size_t out) {
    operations.push_back({.kind = DnnOperation::Kind::matmul,
                          .precision = dnn::dataType::f32,
                          .x = a,
                          .y = out,
                          .b = b});
  }
  void pointwise(int mode, size_t x, std::optional<size_t> b, size_t out) {
    operations.push_back({.kind = DnnOperation::Kind::pointwise,
                          .mode = mode,
                          .precision = dnn::dataType::f32,
                          .x = x,
                          .y = out,
                          .b = b});
  }
  /// Sums or maxima over the dims in which `out` has size 1 and x has not; or
  /// over groups of heads.
  void reduce(int mode, size_t x, size_t out) {
    operations.push_back({.kind = DnnOperation::Kind::reduction,
                          .mode = mode,
                          .precision = dnn::dataType::f32,
                          .x = x,
                          .y = out});
  }
  /// The same elements, in other dims.
  void reshape(size_t x, size_t out) {
    operations.push_back(
        {.kind = DnnOperation::Kind::reshape, .x = x, .y = out});
  }

  bool operator==(const DnnGraph &) const = default;

  std::vector<DnnTensor> tensors;
  std::vector<DnnOperation> operations;

private:
  size_t add(const DnnTensor &tensor) {
    tensors.push_back(tensor);
    return tensors.size() - 1;
  }
};

} // namespace meshwork::runtime::cuda
