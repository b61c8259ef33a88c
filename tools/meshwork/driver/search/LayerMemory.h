// What the ranks of a pipeline need with so many layers, as far as compiled
// layouts tell. Between them, and beyond, bytes lie on a straight line.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace meshwork::driver {

class LayerMemory {
public:
  LayerMemory(size_t ranks, int64_t layers) : known(ranks), layers(layers) {}

  /// What each rank needs with `layersOfRank`, as compiled.
  void add(const std::vector<int64_t> &layersOfRank,
           const std::vector<uint64_t> &bytes);
  /// The most layers with which each rank should need at most `limit` bytes.
  /// Where a rank has been compiled with one number of layers alone, another
  /// rank lends it the bytes of a layer. Until one can, it may have any number
  /// not known to need too much.
  std::vector<int64_t> mostWithin(uint64_t limit) const;

private:
  using Bytes = std::map<int64_t, uint64_t>; // by layers

  int64_t mostWithin(uint64_t limit, size_t rank) const;
  std::optional<double> bytesOfLayer(size_t rank, int64_t near) const;

  std::vector<Bytes> known; // of each rank
  int64_t layers;
};

} // namespace meshwork::driver
