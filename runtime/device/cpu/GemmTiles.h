// The inner loops of TileGemm.cpp: packing of bf16 operands and products of one
// tile, for AVX-512 with bf16 instructions.
//
// A *unit* is two bf16 that follow each other along k, which one instruction
// multiplies and adds. A last one without a partner is followed by a zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device/cpu/Ahead.h"

namespace meshwork::runtime::cpu {

constexpr int64_t tileRows = 8;
constexpr int64_t tileVectors = 3; // of sixteen columns
constexpr int64_t unitElements = 2, unitBytes = 4;

/// One tile of a destination: up to 8 rows by 3 vectors of sixteen columns.
///   to = lhs * rhs (+ bias) (+ from)
struct Tile {
  const std::byte *lhs = nullptr;
  int64_t lhsRow = 0, lhsStep = 0; // bytes from row to row, from unit to unit
  const std::byte *rhs = nullptr;  // packed: [units][vectors][16]
  int64_t units = 0;
  const float *bias = nullptr; // one of each column, up to whole vectors
  const void *from = nullptr;  // may be `to`
  void *to = nullptr;
  bool fromBf16 = false, toBf16 = false;
  int64_t fromLd = 0, toLd = 0;  // elements
  uint16_t lastColumns = 0xffff; // mask of the last vector
  /// Lines to fetch meanwhile, one a unit: in a burst they would fill the
  /// queue of misses, and the products would wait for it.
  const FetchList *fetches = nullptr;
};

/// A part of an operand, `units` along k by `lanes` across, stored with rows
/// `ld` bytes apart.
struct PackSource {
  const std::byte *from = nullptr;
  int64_t ld = 0;
  int64_t lanes = 0;
  int64_t depth = 0; // elements along k
};

struct GemmTiles {
  /// [rows - 1][vectors - 1]
  void (*product[tileRows][tileVectors])(const Tile &);
  /// Packs to [units][width] with zeros in lanes [lanes, width); `width` is a
  /// multiple of sixteen. `alongK`: stored rows run along k; else across it.
  void (*packVectors)(const PackSource &, bool alongK, int64_t width,
                      std::byte *to);
  /// Packs to strips of eight lanes, [lanes / 8][units][8], from rows across k.
  void (*packStrips)(const PackSource &, std::byte *to);
};

extern const GemmTiles gemmTiles;

} // namespace meshwork::runtime::cpu
