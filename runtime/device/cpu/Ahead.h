// Memory that will be needed soon, as lines to fetch into the second-level
// cache while the calling thread computes.
//
//   Ahead ahead({next, ld, rows, rowBytes}, tiles);
//   for (each of `tiles` tiles) {
//     FetchList list;
//     ahead.addPart(list);
//     compute(tile, list);
//   }
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace meshwork::runtime::cpu {

constexpr int64_t lineBytes = 64;

/// Stored rows, `ld` bytes apart.
struct Region {
  const std::byte *from = nullptr;
  int64_t ld = 0, rows = 0, rowBytes = 0;
};

/// Addresses, one a line. Full lists forget what is added: it is fetched when
/// it is read.
struct FetchList {
  static constexpr int64_t capacity = 256;
  const std::byte *lines[capacity];
  int64_t count = 0;

  void add(const std::byte *from, int64_t numLines) {
    numLines = std::min(numLines, capacity - count);
    for (int64_t i = 0; i < numLines; ++i)
      lines[count++] = from + i * lineBytes;
  }
};

/// Hands a region out in even parts.
class Ahead {
public:
  Ahead(const Region &region, int64_t parts)
      : region(region), perRow((region.rowBytes + lineBytes - 1) / lineBytes),
        perPart((region.rows * perRow + parts - 1) / parts) {}
  void addPart(FetchList &list) {
    for (int64_t left = perPart; left > 0 && row < region.rows;) {
      int64_t lines = std::min(left, perRow - line);
      list.add(region.from + row * region.ld + line * lineBytes, lines);
      left -= lines, line += lines;
      if (line == perRow)
        line = 0, ++row;
    }
  }

private:
  Region region;
  int64_t perRow, perPart, row = 0, line = 0;
};

} // namespace meshwork::runtime::cpu
