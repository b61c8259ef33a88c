// The least bytes of any sequence of steps, by looking at every pair of
// shardings. Knows the steps' definitions only, and lists elements instead of
// comparing sizes.
#pragma once

#include "lib/Sharding/Sharding.h"

namespace meshwork::sharding::test {

struct Cost {
  int64_t bytes = INT64_MAX;
  int64_t steps = 0;
};
inline bool operator<(Cost a, Cost b) {
  return a.bytes != b.bytes ? a.bytes < b.bytes : a.steps < b.steps;
}

class Graph {
public:
  Graph(const Mesh &mesh, const std::vector<int64_t> &shape,
        int64_t elementBytes, const std::vector<Sharding> &shardings);

  /// To every sharding, through those that use no axis of `idle`, a set as
  /// bits, and whose dims begin with the axes of `kept`.
  std::vector<Cost> costsFrom(size_t from, unsigned idle,
                              const Sharding &kept) const;
  /// Axes that neither names.
  unsigned idleIn(size_t a, size_t b) const {
    return ~(used[a] | used[b]) & ((1u << mesh.axes.size()) - 1);
  }

private:
  int64_t bytesOfStep(const Sharding &a, const Sharding &b) const;
  int64_t bytesOf(const Sharding &sharding) const;
  std::vector<int64_t> firsts(size_t dim, const std::vector<AxisId> &axes,
                              size_t skip) const;
  bool isFlat(size_t dim, const std::vector<AxisId> &axes, size_t skip) const;

  Mesh mesh;
  std::vector<int64_t> shape;
  int64_t elementBytes;
  std::vector<Sharding> shardings;
  std::vector<unsigned> used;
  struct Edge {
    size_t to;
    int64_t bytes;
  };
  std::vector<std::vector<Edge>> edges;
};

} // namespace meshwork::sharding::test
