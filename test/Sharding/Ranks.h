// All ranks of a mesh in one process, slowly and obviously: what the steps of a
// plan mean, element by element.
#pragma once

#include "lib/Sharding/Reshard.h"

namespace meshwork::sharding::test {

class Ranks {
public:
  /// Scatters a tensor of random values: padding is poisoned, partial ranks
  /// hold random summands.
  Ranks(const Mesh &mesh, const std::vector<int64_t> &shape,
        const Sharding &sharding, uint64_t seed);

  /// Only reads what the step is documented to use: axes, dims, sizes.
  void apply(const Step &step);

  /// Elements that are wrong on any rank, as `sharding` says what it holds.
  int64_t numWrong(const Sharding &sharding) const;

private:
  struct Local {
    std::vector<int64_t> shape;
    std::vector<int64_t> values;
  };
  int64_t poison();
  int64_t truth(int64_t element) const;
  int64_t partOf(int64_t element, int64_t summand, int64_t count) const;
  std::vector<int64_t> groupOf(int64_t rank,
                               const std::vector<AxisId> &axes) const;
  Local reduced(const std::vector<int64_t> &group) const;
  /// `size` elements of `dim` from `begin`; poison behind the end.
  Local cut(const Local &local, size_t dim, int64_t begin, int64_t size);
  Local joined(const std::vector<Local> &parts, size_t dim) const;
  Local ofZigzag(const Local &whole, size_t dim, int64_t parts, int64_t index);
  Local fromZigzag(const std::vector<Local> &parts, size_t dim, int64_t size);

  Mesh mesh;
  std::vector<int64_t> shape;
  Reduction reduction;
  uint64_t seed, poisons = 0;
  std::vector<Local> ranks;
};

} // namespace meshwork::sharding::test
