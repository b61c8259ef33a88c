#include "test/Sharding/Ranks.h"

#include <algorithm>
#include <functional>

namespace meshwork::sharding::test {
namespace {

using Index = std::vector<int64_t>;

uint64_t mixed(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

int64_t elementsOf(const Index &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

int64_t flat(const Index &index, const Index &shape) {
  int64_t at = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    at = at * shape[dim] + index[dim];
  return at;
}

void forEach(const Index &shape, const std::function<void(Index &)> &body) {
  Index index(shape.size());
  for (int64_t i = 0, n = elementsOf(shape); i < n; ++i) {
    int64_t rest = i;
    for (size_t dim = shape.size(); dim-- > 0; rest /= shape[dim])
      index[dim] = rest % shape[dim];
    body(index);
  }
}

} // namespace

Ranks::Ranks(const Mesh &mesh, const std::vector<int64_t> &shape,
             const Sharding &sharding, uint64_t seed)
    : mesh(mesh), shape(shape), reduction(sharding.reduction), seed(seed) {
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
    Local local{localShape(mesh, shape, sharding), {}};
    std::vector<std::vector<layout::Range>> held;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      held.push_back(rangesOf(mesh, shape[dim], sharding.dims[dim], rank));
    forEach(local.shape, [&](Index &index) {
      for (size_t dim = 0; dim < shape.size(); ++dim) {
        index[dim] = layout::positionOf(held[dim], index[dim]);
        if (index[dim] < 0)
          return local.values.push_back(poison());
      }
      local.values.push_back(partOf(flat(index, shape),
                                    mesh.index(rank, sharding.partial),
                                    mesh.numRanks(sharding.partial)));
    });
    ranks.push_back(local);
  }
}

int64_t Ranks::poison() {
  return static_cast<int64_t>(mixed(seed + ++poisons) >> 4 | uint64_t{1} << 55);
}

int64_t Ranks::truth(int64_t element) const {
  return static_cast<int64_t>(
      mixed(seed * 977 + static_cast<uint64_t>(element)) >> 24);
}

int64_t Ranks::partOf(int64_t element, int64_t summand, int64_t count) const {
  auto random = [&](int64_t s) {
    return static_cast<int64_t>(
        mixed(seed + static_cast<uint64_t>(element * count + s)) >> 28);
  };
  if (reduction == Reduction::max) // one candidate is the largest
    return truth(element) - (summand == element % count ? 0 : random(summand));
  int64_t sum = 0;
  for (int64_t s = 0; s + 1 < count; ++s)
    sum += random(s);
  return summand + 1 < count ? random(summand) : truth(element) - sum;
}

std::vector<int64_t> Ranks::groupOf(int64_t rank,
                                    const std::vector<AxisId> &axes) const {
  std::vector<int64_t> group;
  for (int64_t i = 0; i < mesh.numRanks(axes); ++i)
    group.push_back(mesh.withIndex(rank, axes, i));
  return group;
}

Ranks::Local Ranks::reduced(const std::vector<int64_t> &group) const {
  Local result = ranks[group[0]];
  for (size_t member = 1; member < group.size(); ++member)
    for (size_t i = 0; i < result.values.size(); ++i) {
      int64_t other = ranks[group[member]].values[i];
      if (reduction == Reduction::sum) // wraps, as poison may be summed
        result.values[i] =
            static_cast<int64_t>(static_cast<uint64_t>(result.values[i]) +
                                 static_cast<uint64_t>(other));
      else
        result.values[i] = std::max(result.values[i], other);
    }
  return result;
}

Ranks::Local Ranks::cut(const Local &local, size_t dim, int64_t begin,
                        int64_t size) {
  Local result{local.shape, {}};
  result.shape[dim] = size;
  forEach(result.shape, [&](Index &index) {
    index[dim] += begin;
    result.values.push_back(index[dim] < local.shape[dim]
                                ? local.values[flat(index, local.shape)]
                                : poison());
  });
  return result;
}

Ranks::Local Ranks::joined(const std::vector<Local> &parts, size_t dim) const {
  Local result{parts[0].shape, {}};
  int64_t block = parts[0].shape[dim];
  result.shape[dim] *= static_cast<int64_t>(parts.size());
  forEach(result.shape, [&](Index &index) {
    const Local &part = parts[index[dim] / block];
    index[dim] %= block;
    result.values.push_back(part.values[flat(index, part.shape)]);
  });
  return result;
}

/// Chunks `index` and 2 * parts - 1 - index, behind each other.
Ranks::Local Ranks::ofZigzag(const Local &whole, size_t dim, int64_t parts,
                             int64_t index) {
  int64_t chunk = (whole.shape[dim] + 2 * parts - 1) / (2 * parts);
  return joined({cut(whole, dim, index * chunk, chunk),
                 cut(whole, dim, (2 * parts - 1 - index) * chunk, chunk)},
                dim);
}

/// First halves in order, second halves in the reverse order.
Ranks::Local Ranks::fromZigzag(const std::vector<Local> &parts, size_t dim,
                               int64_t size) {
  int64_t chunk = parts[0].shape[dim] / 2;
  std::vector<Local> chunks;
  for (const Local &part : parts)
    chunks.push_back(cut(part, dim, 0, chunk));
  for (size_t i = parts.size(); i-- > 0;)
    chunks.push_back(cut(parts[i], dim, chunk, chunk));
  return cut(joined(chunks, dim), dim, 0, size);
}

void Ranks::apply(const Step &step) {
  auto dim = static_cast<size_t>(step.dim),
       toDim = static_cast<size_t>(step.toDim);
  int64_t n = mesh.numRanks(step.axes);
  auto block = [&](size_t d) { return (ranks[0].shape[d] + n - 1) / n; };
  auto part = [&](const Local &whole, size_t d, int64_t index) {
    return step.layoutEntered() == DimLayout::zigzag
               ? ofZigzag(whole, d, n, index)
               : cut(whole, d, index * block(d), block(d));
  };
  auto whole = [&](const std::vector<Local> &parts, size_t d, int64_t size) {
    return step.layoutLeft() == DimLayout::zigzag
               ? fromZigzag(parts, d, size)
               : cut(joined(parts, d), d, 0, size);
  };
  auto parentSize = [&](size_t d) {
    return localSize(mesh, shape[d], step.after.dims[d]);
  };
  std::vector<Local> results;
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
    std::vector<int64_t> group = groupOf(rank, step.axes);
    int64_t me = mesh.index(rank, step.axes);
    std::vector<Local> parts;
    switch (step.kind) {
    case Step::Kind::allReduce:
      results.push_back(reduced(group));
      break;
    case Step::Kind::reduceScatter:
      results.push_back(part(reduced(group), dim, me));
      break;
    case Step::Kind::slice:
      results.push_back(part(ranks[rank], dim, me));
      break;
    case Step::Kind::allGather:
      for (int64_t member : group)
        parts.push_back(ranks[member]);
      results.push_back(whole(parts, dim, parentSize(dim)));
      break;
    case Step::Kind::allToAll:
      for (int64_t member : group)
        parts.push_back(part(ranks[member], toDim, me));
      results.push_back(whole(parts, dim, parentSize(dim)));
      break;
    case Step::Kind::permute:
      results.push_back(ranks[permuteSource(mesh, step, rank)]);
      break;
    }
  }
  ranks = std::move(results);
}

int64_t Ranks::numWrong(const Sharding &sharding) const {
  int64_t wrong = 0;
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
    Local local = reduced(groupOf(rank, sharding.partial));
    if (local.shape != localShape(mesh, shape, sharding))
      return -1;
    std::vector<std::vector<layout::Range>> held;
    Index size;
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      held.push_back(rangesOf(mesh, shape[dim], sharding.dims[dim], rank));
      size.push_back(layout::countOf(held[dim]));
    }
    forEach(size, [&](Index &index) {
      int64_t value = local.values[flat(index, local.shape)];
      for (size_t dim = 0; dim < index.size(); ++dim)
        index[dim] = layout::positionOf(held[dim], index[dim]);
      wrong += value != truth(flat(index, shape));
    });
  }
  return wrong;
}

} // namespace meshwork::sharding::test
