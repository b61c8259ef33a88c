// One packed panel of rhs against the rows of lhs, tile by tile.
#pragma once

#include "runtime/device/cpu/Ahead.h"
#include "runtime/device/cpu/GemmTiles.h"
#include "runtime/device/cpu/LhsPacker.h"

namespace meshwork::runtime::cpu {

constexpr int64_t vectorColumns = 16;

/// Where tile columns begin and end, in vectors of sixteen columns: as few
/// strips as possible, as even as possible.
struct Strips {
  explicit Strips(int64_t columns)
      : vectors(ceilDiv(columns, vectorColumns)),
        count(ceilDiv(vectors, tileVectors)) {}
  int64_t begin(int64_t strip) const { return strip * vectors / count; }
  int64_t vectors, count;
};

struct TilePanel {
  Tile first; // the one at the upper left
  int64_t rows, columns;
  bool lhsPacked;                    // to strips of eight rows
  const LhsPacker *packer = nullptr; // packs them first, where not null
};

/// `next` is fetched on the way.
void runPanel(const TilePanel &panel, const Region &next);

} // namespace meshwork::runtime::cpu
