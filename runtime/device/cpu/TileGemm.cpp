// Loops around the tiles of GemmTiles.cpp, outermost first: panels of columns,
// blocks of rows, slices of k; then tile by tile. A slice of a panel of rhs is
// packed to strips as wide as a tile and stays in the second-level cache while
// the rows of lhs pass by. A stored lhs with rows along k is read in place.
#include "runtime/device/cpu/TileGemm.h"

#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/Ahead.h"
#include "runtime/device/cpu/Bf16.h"
#include "runtime/device/cpu/Dnnl.h"
#include "runtime/device/cpu/GemmTiles.h"
#include "runtime/device/cpu/Operation.h"

namespace meshwork::runtime::cpu {
namespace {

constexpr int64_t lanes = 16;
/// A panel's slice takes 288 KiB, lhs in strips 12 KiB each.
constexpr int64_t maxPanel = 192, maxRows = 1024, maxPackedRows = 512;
constexpr int64_t maxUnits = 384;

/// Units [first, first + units) of k.
struct Slice {
  int64_t first, units;
  bool packLhs;
};

/// Where tile columns begin and end, in vectors of sixteen columns: as few
/// strips as possible, as even as possible.
struct Strips {
  explicit Strips(int64_t columns)
      : vectors(ceilDiv(columns, lanes)), count(ceilDiv(vectors, tileVectors)) {
  }
  int64_t begin(int64_t strip) const { return strip * vectors / count; }
  int64_t vectors, count;
};

int64_t alignedColumns(int64_t columns) {
  return ceilDiv(columns, lanes) * lanes;
}

struct Scratch {
  std::byte *rhs, *lhs;
  float *sums, *bias;
};

struct Operands {
  const std::byte *lhs, *rhs;
  std::byte *dst;
  const std::byte *bias;
};

/// A block of the destination.
struct Block {
  int64_t m, rows, n, columns;
};

class TileGemm final : public Gemm {
public:
  explicit TileGemm(const GemmSpec &spec)
      : spec(spec), isBf16(spec.type == plan::DType::bf16),
        tiles(isBf16 ? gemmTilesBf16 : gemmTilesF32),
        units(ceilDiv(spec.k, tiles.unitElements)), bytes(isBf16 ? 2 : 4) {}

  uint64_t scratchBytes() const override {
    Carver carver(nullptr);
    (void)carve(carver);
    return carver.used();
  }
  uint64_t packedBytes() const override { return 0; }
  absl::Status generate(int) override { return absl::OkStatus(); }
  void pack(int, const std::byte *, std::byte *, std::byte *) override {}
  void run(int thread, const std::byte *lhs, const std::byte *rhs,
           std::byte *dst, const std::byte *bias, std::byte *scratch) override;

private:
  /// Of a block whose sums fit the scratch, where they need any.
  int64_t columnsOfBlock() const {
    return std::min(spec.n, sumsInScratch() ? maxPanel : spec.n);
  }
  int64_t rowsOfBlock() const {
    return std::min(spec.m, spec.lhsTransposed ? maxPackedRows : maxRows);
  }
  bool sumsInScratch() const {
    return numSlices() > 1 && spec.dstType == plan::DType::bf16;
  }
  bool hasOddEnd() const { return spec.k % tiles.unitElements != 0; }
  int64_t numSlices() const;
  Slice slice(int64_t index) const;
  Scratch carve(Carver &carver) const;
  void widenBias(const Operands &ops, const Block &block, float *to) const;
  void runBlock(const Operands &ops, const Block &block,
                const Scratch &scratch) const;
  Region nextSource(const Operands &ops, const Block &block, const Block &panel,
                    int64_t index) const;
  PackSource rhsSource(const Slice &slice, const std::byte *rhs, int64_t n,
                       int64_t lanes) const;
  void packRhs(const Operands &ops, const Block &block, const Slice &slice,
               std::byte *to) const;
  Tile tileOf(const Operands &ops, const Block &block, const Slice &slice,
              const Scratch &scratch) const;
  void packLhs(const Operands &ops, const Block &block, const Slice &slice,
               std::byte *to) const;
  int64_t tilesOf(const Block &block) const {
    return ceilDiv(block.rows, tileRows) * Strips(block.columns).count;
  }
  void runTiles(const Tile &first, const Block &block, bool lhsPacked,
                Ahead &ahead) const;
  int64_t depthOf(const Slice &slice) const {
    return std::min(slice.units * tiles.unitElements,
                    spec.k - slice.first * tiles.unitElements);
  }

  GemmSpec spec;
  bool isBf16;
  const GemmTiles &tiles;
  int64_t units, bytes;
};

/// Even slices. A last odd bf16 of an lhs that is read in place makes one of
/// its own, since reading a whole unit would take in the next row.
int64_t TileGemm::numSlices() const {
  bool split = hasOddEnd() && !spec.lhsTransposed;
  return ceilDiv(units - split, maxUnits) + split;
}

Slice TileGemm::slice(int64_t index) const {
  bool split = hasOddEnd() && !spec.lhsTransposed;
  int64_t whole = units - split, count = ceilDiv(whole, maxUnits);
  if (index == count)
    return {whole, 1, true};
  int64_t begin = whole * index / count, end = whole * (index + 1) / count;
  return {begin, end - begin, spec.lhsTransposed};
}

Scratch TileGemm::carve(Carver &carver) const {
  int64_t columns = std::min(spec.n, maxPanel), rows = rowsOfBlock();
  int64_t depth = std::min(units, maxUnits);
  Scratch scratch;
  scratch.rhs =
      carver.take<std::byte>(alignedColumns(columns) * depth * unitBytes);
  int64_t lhsUnits = spec.lhsTransposed ? depth : hasOddEnd() ? 1 : 0;
  scratch.lhs = carver.take<std::byte>(ceilDiv(rows, tileRows) * tileRows *
                                       lhsUnits * unitBytes);
  scratch.sums = carver.take<float>(sumsInScratch() ? rows * columns : 0);
  scratch.bias = carver.take<float>(spec.hasBias ? alignedColumns(columns) : 0);
  return scratch;
}

void TileGemm::run(int, const std::byte *lhs, const std::byte *rhs,
                   std::byte *dst, const std::byte *bias,
                   std::byte *scratchBytes) {
  Carver carver(scratchBytes);
  Scratch scratch = carve(carver);
  Operands ops{lhs, rhs, dst, bias};
  int64_t columns = columnsOfBlock(), rows = rowsOfBlock();
  for (int64_t n = 0; n < spec.n; n += columns)
    for (int64_t m = 0; m < spec.m; m += rows)
      runBlock(
          ops,
          {m, std::min(rows, spec.m - m), n, std::min(columns, spec.n - n)},
          scratch);
}

void TileGemm::widenBias(const Operands &ops, const Block &block,
                         float *to) const {
  for (int64_t i = 0; i < block.columns; ++i) {
    int64_t n = block.n + i;
    to[i] = spec.biasType == plan::DType::bf16
                ? toFloat(reinterpret_cast<const Bf16 *>(ops.bias)[n])
                : reinterpret_cast<const float *>(ops.bias)[n];
  }
}

void TileGemm::runBlock(const Operands &ops, const Block &block,
                        const Scratch &scratch) const {
  for (int64_t index = 0; index < numSlices(); ++index) {
    Slice part = slice(index);
    if (part.packLhs)
      packLhs(ops, block, part, scratch.lhs);
    for (int64_t n = 0; n < block.columns; n += maxPanel) {
      Block panel = block;
      panel.n += n, panel.columns = std::min(maxPanel, block.columns - n);
      packRhs(ops, panel, part, scratch.rhs);
      if (spec.hasBias)
        widenBias(ops, panel, scratch.bias);
      Ahead ahead(nextSource(ops, block, panel, index), tilesOf(panel));
      runTiles(tileOf(ops, panel, part, scratch), panel, part.packLhs, ahead);
    }
  }
}

/// What is packed after `panel` of slice `index`: the next panel, else the
/// first one of the next slice, else of the next block.
Region TileGemm::nextSource(const Operands &ops, const Block &block,
                            const Block &panel, int64_t index) const {
  int64_t n = panel.n + panel.columns, end = block.n + block.columns;
  if (n == end && index + 1 < numSlices())
    ++index, n = block.n;
  else if (n == end)
    index = 0, n = block.m + block.rows < spec.m ? block.n : end;
  if (n >= spec.n)
    return {};
  PackSource source =
      rhsSource(slice(index), ops.rhs, n, std::min(maxPanel, spec.n - n));
  int64_t lanesWide = source.lanes, deep = source.depth;
  if (spec.rhsTransposed)
    std::swap(lanesWide, deep);
  return {source.from, source.ld, deep, lanesWide * bytes};
}

PackSource TileGemm::rhsSource(const Slice &slice, const std::byte *rhs,
                               int64_t n, int64_t lanes) const {
  int64_t k = slice.first * tiles.unitElements;
  int64_t at = spec.rhsTransposed ? n * spec.rhsLd + k : k * spec.rhsLd + n;
  return {rhs + at * bytes, spec.rhsLd * bytes, lanes, depthOf(slice)};
}

void TileGemm::packRhs(const Operands &ops, const Block &block,
                       const Slice &slice, std::byte *to) const {
  Strips strips(block.columns);
  for (int64_t strip = 0; strip < strips.count; ++strip) {
    int64_t begin = strips.begin(strip) * lanes;
    int64_t width = strips.begin(strip + 1) * lanes - begin;
    tiles.packVectors(rhsSource(slice, ops.rhs, block.n + begin,
                                std::min(width, block.columns - begin)),
                      spec.rhsTransposed, width,
                      to + begin * slice.units * unitBytes);
  }
}

void TileGemm::packLhs(const Operands &ops, const Block &block,
                       const Slice &slice, std::byte *to) const {
  int64_t k = slice.first * tiles.unitElements;
  if (spec.lhsTransposed) {
    PackSource source{ops.lhs + (k * spec.lhsLd + block.m) * bytes,
                      spec.lhsLd * bytes, block.rows, depthOf(slice)};
    tiles.packStrips(source, to);
    return;
  }
  // The odd end: one bf16 of each row.
  for (int64_t row = 0; row < block.rows; ++row) {
    Bf16 unit[2] = {};
    std::memcpy(unit, ops.lhs + ((block.m + row) * spec.lhsLd + k) * bytes, 2);
    std::memcpy(to + row * unitBytes, unit, unitBytes);
  }
}

/// The tile at the block's upper left, for one slice of k: the first brings
/// the bias and what was there before, the last writes the result.
Tile TileGemm::tileOf(const Operands &ops, const Block &block,
                      const Slice &slice, const Scratch &scratch) const {
  bool isFirst = slice.first == 0, isLast = slice.first + slice.units == units;
  bool dstIsBf16 = spec.dstType == plan::DType::bf16;
  std::byte *dst =
      ops.dst + (block.m * spec.dstLd + block.n) * (dstIsBf16 ? 2 : 4);
  Tile tile;
  tile.lhs = slice.packLhs ? scratch.lhs
                           : ops.lhs + block.m * spec.lhsLd * bytes +
                                 slice.first * unitBytes;
  tile.lhsRow = slice.packLhs ? unitBytes : spec.lhsLd * bytes;
  tile.lhsStep = slice.packLhs ? tileRows * unitBytes : unitBytes;
  tile.rhs = scratch.rhs;
  tile.units = slice.units;
  tile.bias = isFirst && spec.hasBias ? scratch.bias : nullptr;
  bool fromDst = isFirst ? spec.accumulate : !dstIsBf16;
  if (fromDst)
    tile.from = dst, tile.fromLd = spec.dstLd, tile.fromBf16 = dstIsBf16;
  else if (!isFirst)
    tile.from = scratch.sums, tile.fromLd = block.columns;
  if (isLast || !dstIsBf16)
    tile.to = dst, tile.toLd = spec.dstLd, tile.toBf16 = dstIsBf16;
  else
    tile.to = scratch.sums, tile.toLd = block.columns;
  return tile;
}

template <typename T> T *advance(T *pointer, int64_t elements, bool isBf16) {
  using Byte =
      std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return pointer ? static_cast<Byte *>(pointer) + elements * (isBf16 ? 2 : 4)
                 : nullptr;
}

/// The lines that a tile will write; by then they have arrived.
void fetchResult(const Tile &tile, int64_t rows, int64_t columns) {
  int64_t element = tile.toBf16 ? 2 : 4;
  for (int64_t row = 0; row < rows; ++row) {
    std::byte *to =
        static_cast<std::byte *>(tile.to) + row * tile.toLd * element;
    for (int64_t at = 0; at < columns * element; at += 64)
      __builtin_prefetch(to + at, 1);
  }
}

/// The rows of lhs from `m` on that the next tiles read.
Region nextLhs(const Tile &first, const Block &block, int64_t m,
               bool lhsPacked) {
  int64_t rows = std::min(tileRows, block.rows - m);
  if (rows <= 0)
    return {};
  int64_t stripBytes = first.units * unitBytes;
  if (lhsPacked)
    return {first.lhs + m * stripBytes, 0, 1, tileRows * stripBytes};
  return {first.lhs + m * first.lhsRow, first.lhsRow, rows, stripBytes};
}

void TileGemm::runTiles(const Tile &first, const Block &block, bool lhsPacked,
                        Ahead &ahead) const {
  int64_t stripRow = lhsPacked ? first.units * unitBytes : first.lhsRow;
  Strips strips(block.columns);
  for (int64_t m = 0; m < block.rows; m += tileRows) {
    int64_t rows = std::min(tileRows, block.rows - m);
    Ahead nextRows(nextLhs(first, block, m + tileRows, lhsPacked),
                   strips.count);
    for (int64_t strip = 0; strip < strips.count; ++strip) {
      int64_t begin = strips.begin(strip), end = strips.begin(strip + 1);
      int64_t n = begin * lanes, last = block.columns - (end - 1) * lanes;
      Tile tile = first;
      tile.lhs += m * stripRow;
      tile.rhs += n * first.units * unitBytes;
      tile.bias = first.bias ? first.bias + n : nullptr;
      tile.from = advance(first.from, m * first.fromLd + n, first.fromBf16);
      tile.to = advance(first.to, m * first.toLd + n, first.toBf16);
      if (last < lanes)
        tile.lastColumns = static_cast<uint16_t>((1u << last) - 1);
      fetchResult(tile, rows,
                  std::min((end - begin) * lanes, block.columns - n));
      nextRows.fetchPart();
      ahead.fetchPart();
      tiles.product[rows - 1][end - begin - 1](tile);
    }
  }
}

} // namespace

bool hasTileGemm(plan::DType type) {
  int isa = dnnl_get_effective_cpu_isa();
  constexpr int bf16 = dnnl_cpu_isa_avx512_core_bf16;
  constexpr int matrix = dnnl_cpu_isa_avx512_core_amx & ~bf16;
  constexpr int plain = dnnl_cpu_isa_avx512_core;
  if (type == plan::DType::bf16)
    return (isa & bf16) == bf16 && (isa & matrix) == 0;
  return (isa & plain) == plain;
}

std::unique_ptr<Gemm> createTileGemm(const GemmSpec &spec) {
  return std::make_unique<TileGemm>(spec);
}

} // namespace meshwork::runtime::cpu
