#include "runtime/device/cpu/TilePanel.h"

#include <type_traits>

namespace meshwork::runtime::cpu {
namespace {

/// Shallower tiles are those of attention, whose operands are in cache; to list
/// their lines takes a twentieth of their time.
constexpr int64_t minUnitsToFetch = 96;

template <typename T> T *advance(T *pointer, int64_t elements, bool isBf16) {
  using Byte =
      std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return pointer ? static_cast<Byte *>(pointer) + elements * (isBf16 ? 2 : 4)
                 : nullptr;
}

/// The lines that a tile will write.
void addResult(const Tile &tile, int64_t rows, int64_t columns,
               FetchList &list) {
  int64_t element = tile.toBf16 ? 2 : 4;
  const auto *to = static_cast<const std::byte *>(tile.to);
  for (int64_t row = 0; row < rows; ++row)
    list.add(to + row * tile.toLd * element,
             ceilDiv(columns * element, lineBytes));
}

int64_t bytesOfStrip(const TilePanel &panel) {
  return panel.first.units * unitBytes;
}

/// The rows of lhs from `m` on that the next tiles read.
Region lhsAt(const TilePanel &panel, int64_t m) {
  int64_t rows = std::min(tileRows, panel.rows - m), row = panel.first.lhsRow;
  if (rows <= 0)
    return {};
  if (panel.lhsPacked)
    return {panel.first.lhs + m * bytesOfStrip(panel), 0, 1,
            tileRows * bytesOfStrip(panel)};
  return {panel.first.lhs + m * row, row, rows, bytesOfStrip(panel)};
}

/// Eight rows from `m` on, strip by strip.
void runRows(const TilePanel &panel, int64_t m, Ahead &rowsAhead,
             Ahead &panelAhead) {
  const Tile &first = panel.first;
  Strips strips(panel.columns);
  int64_t rows = std::min(tileRows, panel.rows - m);
  for (int64_t strip = 0; strip < strips.count; ++strip) {
    int64_t begin = strips.begin(strip), end = strips.begin(strip + 1);
    int64_t n = begin * vectorColumns, wide = (end - begin) * vectorColumns;
    int64_t columns = std::min(wide, panel.columns - n);
    Tile tile = first;
    tile.lhs += m * (panel.lhsPacked ? bytesOfStrip(panel) : first.lhsRow);
    tile.rhs += n * bytesOfStrip(panel);
    tile.bias = first.bias ? first.bias + n : nullptr;
    tile.from = advance(first.from, m * first.fromLd + n, first.fromBf16);
    tile.to = advance(first.to, m * first.toLd + n, first.toBf16);
    tile.lastColumns = static_cast<uint16_t>(0xffff >> (wide - columns));
    FetchList fetches;
    if (first.units >= minUnitsToFetch) {
      addResult(tile, rows, columns, fetches);
      rowsAhead.addPart(fetches);
      panelAhead.addPart(fetches);
    }
    tile.fetches = &fetches;
    gemmTiles.product[rows - 1][end - begin - 1](tile);
  }
}

} // namespace

void runPanel(const TilePanel &panel, const Region &next) {
  const LhsPacker *packer = panel.packer;
  int64_t strips = Strips(panel.columns).count;
  Ahead panelAhead(next, ceilDiv(panel.rows, tileRows) * strips);
  Ahead rowsAhead({}, 1);
  for (int64_t m = 0; m < panel.rows; m += tileRows) {
    if (!packer)
      rowsAhead = Ahead(lhsAt(panel, m + tileRows), strips);
    else if (packer->startsAt(m)) {
      packer->pack(m);
      rowsAhead = Ahead(packer->next(m), packer->stripsAtOnce() * strips);
    }
    runRows(panel, m, rowsAhead, panelAhead);
  }
}

} // namespace meshwork::runtime::cpu
