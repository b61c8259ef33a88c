// Fetches memory into the second-level cache in even parts, so that memory
// works while the calling thread computes.
//
//   Ahead ahead({next, ld, rows, rowBytes}, tiles);
//   for (each of `tiles` tiles) { ahead.fetchPart(); compute(tile); }
#pragma once

#include <cstddef>
#include <cstdint>

namespace meshwork::runtime::cpu {

/// Stored rows, `ld` bytes apart, that will be needed next.
struct Region {
  const std::byte *from = nullptr;
  int64_t ld = 0, rows = 0, rowBytes = 0;
};

class Ahead {
public:
  Ahead(const Region &region, int64_t parts)
      : region(region), perRow((region.rowBytes + lineBytes - 1) / lineBytes),
        perPart((region.rows * perRow + parts - 1) / parts) {}
  void fetchPart() {
    for (int64_t i = 0; i < perPart && row < region.rows; ++i) {
      __builtin_prefetch(region.from + row * region.ld + line * lineBytes, 0,
                         2);
      if (++line == perRow)
        line = 0, ++row;
    }
  }

private:
  static constexpr int64_t lineBytes = 64;
  Region region;
  int64_t perRow, perPart, row = 0, line = 0;
};

} // namespace meshwork::runtime::cpu
