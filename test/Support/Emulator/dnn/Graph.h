// Descriptors of the library, and graphs as the runtime describes them, read
// back from those.
#pragma once

#include "runtime/device/cuda/DnnGraph.h"
#include <cstddef>
#include <map>
#include <memory>
#include <stdexcept>

namespace meshwork::runtime::cuda::dnn {

struct Attribute {
  int type;
  int64_t count;
  std::vector<std::byte> bytes;
};

/// A graph whose tensors are numbered as they are found; `uids` names them.
struct NumberedGraph {
  DnnGraph graph;
  std::vector<int64_t> uids;
};

struct Object {
  int kind;
  bool isFinished = false;
  std::map<int, Attribute> attributes;
  std::shared_ptr<const NumberedGraph> graph; // of a graph, a config, a plan

  /// Throws where the attribute is missing or of another size.
  template <typename T> std::vector<T> all(int attribute) const;
  template <typename T> T one(int attribute) const {
    std::vector<T> found = all<T>(attribute);
    if (found.size() != 1)
      throw std::invalid_argument("an attribute has several elements");
    return found[0];
  }
  bool has(int attribute) const { return attributes.count(attribute) > 0; }
};

template <typename T> std::vector<T> Object::all(int attribute) const {
  auto found = attributes.find(attribute);
  if (found == attributes.end())
    throw std::invalid_argument("an attribute is missing");
  const std::vector<std::byte> &bytes = found->second.bytes;
  if (bytes.size() != sizeof(T) * static_cast<size_t>(found->second.count))
    throw std::invalid_argument("an attribute has another type");
  std::vector<T> elements(static_cast<size_t>(found->second.count));
  std::copy(bytes.begin(), bytes.end(),
            reinterpret_cast<std::byte *>(elements.data()));
  return elements;
}

/// Throws std::invalid_argument where the operations do not fit together.
std::shared_ptr<const NumberedGraph> graphFrom(const Object &descriptor);

/// Computes all tensors. `at` are addresses by number: of device memory, or on
/// the host for a value.
void interpret(const DnnGraph &graph, const std::vector<void *> &at);

/// From the first to past the last element of a tensor in memory.
size_t spanBytes(const DnnTensor &tensor);

} // namespace meshwork::runtime::cuda::dnn
