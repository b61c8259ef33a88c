// Packing of a transposed lhs for TilePanel.cpp.
#pragma once

#include <algorithm>

#include "runtime/device/cpu/Ahead.h"
#include "runtime/device/cpu/GemmTiles.h"
#include "runtime/device/cpu/Operation.h"

namespace meshwork::runtime::cpu {

/// Packs a stored lhs with rows across k to strips while the first panel is
/// computed, a line of each stored row at a time. Those lines come from memory;
/// the tiles before give them time to arrive.
class LhsPacker {
public:
  LhsPacker(const PackSource &source, std::byte *to)
      : source(source), to(to),
        lanesAtOnce(lineBytes / unitBytes * unitElements),
        stripBytes(ceilDiv(source.depth, unitElements) * tileRows * unitBytes) {
  }
  /// A lane is a row of the product.
  bool startsAt(int64_t lane) const { return lane % lanesAtOnce == 0; }
  int64_t stripsAtOnce() const { return lanesAtOnce / tileRows; }
  void pack(int64_t lane) const {
    gemmTiles.packStrips(from(lane), to + lane / tileRows * stripBytes);
  }
  /// What the pack() after the one at `lane` reads.
  Region next(int64_t lane) const {
    lane += lanesAtOnce;
    if (lane >= source.lanes)
      return {};
    return {from(lane).from, source.ld, source.depth, lineBytes};
  }

private:
  PackSource from(int64_t lane) const {
    PackSource part = source;
    part.from += lane * unitBytes / unitElements;
    part.lanes = std::min(lanesAtOnce, source.lanes - lane);
    return part;
  }

  PackSource source;
  std::byte *to;
  int64_t lanesAtOnce, stripBytes;
};

} // namespace meshwork::runtime::cpu
