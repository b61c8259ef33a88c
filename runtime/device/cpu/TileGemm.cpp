// Loops around the tiles of GemmTiles.cpp, outermost first: blocks of rows,
// slices of k, panels of columns (columns first where sums need scratch); then
// tile by tile, TilePanel.cpp. A slice of a panel of rhs is packed to strips as
// wide as a tile. It stays in the second-level cache while the rows of lhs pass
// by. Where the caller has packed all of rhs, the slice is taken from there. A
// stored lhs with rows along k is read in place.
#include "runtime/device/cpu/TileGemm.h"

#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/Bf16.h"
#include "runtime/device/cpu/Dnnl.h"
#include "runtime/device/cpu/LhsPacker.h"
#include "runtime/device/cpu/TilePanel.h"

namespace meshwork::runtime::cpu {
namespace {

/// A panel's slice takes 288 KiB, each strip of lhs 12 KiB.
constexpr int64_t elementBytes = 2;
constexpr int64_t maxPanel = 192, maxRows = 1024, maxUnits = 384;

/// Units [first, first + units) of k.
struct Slice {
  int64_t first, units;
  bool packLhs;
};

int64_t wholeVectors(int64_t columns) {
  return ceilDiv(columns, vectorColumns) * vectorColumns;
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
      : spec(spec), units(ceilDiv(spec.k, unitElements)) {}

  uint64_t scratchBytes() const override {
    Carver carver(nullptr);
    (void)carve(carver);
    return carver.used();
  }
  uint64_t packedBytes() const override {
    return isPacked() ? static_cast<uint64_t>(packedAt({units, 0, false}, 0))
                      : 0;
  }
  absl::Status generate(int) override { return absl::OkStatus(); }
  void pack(int thread, const std::byte *rhs, std::byte *packed,
            std::byte *scratch) override;
  void run(int thread, const std::byte *lhs, const std::byte *rhs,
           std::byte *dst, const std::byte *bias, std::byte *scratch,
           float scale) override;

private:
  /// Of a block whose sums fit the scratch, where they need any.
  int64_t columnsOfBlock() const {
    return std::min(spec.n, sumsInScratch() ? maxPanel : spec.n);
  }
  /// As few blocks as possible, as even as possible.
  int64_t rowsOfBlock() const {
    int64_t rows = ceilDiv(spec.m, ceilDiv(spec.m, maxRows));
    return std::min(spec.m, ceilDiv(rows, tileRows) * tileRows);
  }
  bool sumsInScratch() const {
    return numSlices() > 1 && spec.dstType == plan::DType::bf16;
  }
  /// Of a product from memory each panel is packed when its turn comes.
  bool isPacked() const { return spec.packRhs && spec.inCache; }
  /// Where a slice of the panel from column `n` on begins: slices follow each
  /// other, and in a slice its panels.
  int64_t packedAt(const Slice &slice, int64_t n) const {
    return (slice.first * wholeVectors(spec.n) + n * slice.units) * unitBytes;
  }
  bool hasOddEnd() const { return spec.k % unitElements != 0; }
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
  void packRhs(const std::byte *rhs, const Block &block, const Slice &slice,
               std::byte *to) const;
  const std::byte *packedRhs(const Operands &ops, const Block &panel,
                             const Slice &slice, const Scratch &scratch) const;
  Tile tileOf(const Operands &ops, const Block &block, const Slice &slice,
              const Scratch &scratch) const;
  LhsPacker lhsPacker(const Operands &ops, const Block &block,
                      const Slice &slice, std::byte *to) const;
  void packOddEnd(const Operands &ops, const Block &block, const Slice &slice,
                  std::byte *to) const;
  int64_t depthOf(const Slice &slice) const {
    return std::min(slice.units * unitElements,
                    spec.k - slice.first * unitElements);
  }

  GemmSpec spec;
  int64_t units; // along k
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

/// Never less than for a part of the product.
Scratch TileGemm::carve(Carver &carver) const {
  int64_t columns = std::min(spec.n, maxPanel),
          rows = std::min(spec.m, maxRows);
  int64_t depth = std::min(units, maxUnits);
  Scratch scratch;
  scratch.rhs = carver.take<std::byte>(
      isPacked() ? 0 : wholeVectors(columns) * depth * unitBytes);
  int64_t lhsUnits = spec.lhsTransposed ? depth : hasOddEnd() ? 1 : 0;
  scratch.lhs = carver.take<std::byte>(ceilDiv(rows, tileRows) * tileRows *
                                       lhsUnits * unitBytes);
  scratch.sums = carver.take<float>(sumsInScratch() ? rows * columns : 0);
  scratch.bias = carver.take<float>(spec.hasBias ? wholeVectors(columns) : 0);
  return scratch;
}

void TileGemm::pack(int, const std::byte *rhs, std::byte *packed, std::byte *) {
  for (int64_t index = 0; index < numSlices(); ++index)
    for (int64_t n = 0; n < spec.n; n += maxPanel) {
      Slice part = slice(index);
      packRhs(rhs, {0, 0, n, std::min(maxPanel, spec.n - n)}, part,
              packed + packedAt(part, n));
    }
}

void TileGemm::run(int, const std::byte *lhs, const std::byte *rhs,
                   std::byte *dst, const std::byte *bias,
                   std::byte *scratchBytes, float) {
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
    LhsPacker packer = lhsPacker(ops, block, part, scratch.lhs);
    if (part.packLhs && !spec.lhsTransposed)
      packOddEnd(ops, block, part, scratch.lhs);
    for (int64_t n = 0; n < block.columns; n += maxPanel) {
      Block panel = block;
      panel.n += n, panel.columns = std::min(maxPanel, block.columns - n);
      if (spec.hasBias)
        widenBias(ops, panel, scratch.bias);
      TilePanel tilePanel{tileOf(ops, panel, part, scratch), panel.rows,
                          panel.columns, part.packLhs};
      tilePanel.first.rhs = packedRhs(ops, panel, part, scratch);
      if (n == 0 && spec.lhsTransposed)
        tilePanel.packer = &packer;
      runPanel(tilePanel, nextSource(ops, block, panel, index));
    }
  }
}

/// Packs it to `scratch` where the caller has not.
const std::byte *TileGemm::packedRhs(const Operands &ops, const Block &panel,
                                     const Slice &slice,
                                     const Scratch &scratch) const {
  if (isPacked())
    return ops.rhs + packedAt(slice, panel.n);
  packRhs(ops.rhs, panel, slice, scratch.rhs);
  return scratch.rhs;
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
  if (n >= spec.n || isPacked())
    return {};
  PackSource source =
      rhsSource(slice(index), ops.rhs, n, std::min(maxPanel, spec.n - n));
  int64_t lanesWide = source.lanes, deep = source.depth;
  if (spec.rhsTransposed)
    std::swap(lanesWide, deep);
  return {source.from, source.ld, deep, lanesWide * elementBytes};
}

PackSource TileGemm::rhsSource(const Slice &slice, const std::byte *rhs,
                               int64_t n, int64_t lanes) const {
  int64_t k = slice.first * unitElements;
  int64_t at = spec.rhsTransposed ? n * spec.rhsLd + k : k * spec.rhsLd + n;
  return {rhs + at * elementBytes, spec.rhsLd * elementBytes, lanes,
          depthOf(slice)};
}

void TileGemm::packRhs(const std::byte *rhs, const Block &block,
                       const Slice &slice, std::byte *to) const {
  Strips strips(block.columns);
  for (int64_t strip = 0; strip < strips.count; ++strip) {
    int64_t begin = strips.begin(strip) * vectorColumns;
    int64_t width = strips.begin(strip + 1) * vectorColumns - begin;
    gemmTiles.packVectors(rhsSource(slice, rhs, block.n + begin,
                                    std::min(width, block.columns - begin)),
                          spec.rhsTransposed, width,
                          to + begin * slice.units * unitBytes);
  }
}

LhsPacker TileGemm::lhsPacker(const Operands &ops, const Block &block,
                              const Slice &slice, std::byte *to) const {
  int64_t k = slice.first * unitElements;
  return LhsPacker({ops.lhs + (k * spec.lhsLd + block.m) * elementBytes,
                    spec.lhsLd * elementBytes, block.rows, depthOf(slice)},
                   to);
}

/// One bf16 of each row.
void TileGemm::packOddEnd(const Operands &ops, const Block &block,
                          const Slice &slice, std::byte *to) const {
  int64_t k = slice.first * unitElements;
  for (int64_t row = 0; row < block.rows; ++row) {
    Bf16 unit[2] = {};
    std::memcpy(unit,
                ops.lhs + ((block.m + row) * spec.lhsLd + k) * elementBytes, 2);
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
                           : ops.lhs + block.m * spec.lhsLd * elementBytes +
                                 slice.first * unitBytes;
  tile.lhsRow = slice.packLhs ? unitBytes : spec.lhsLd * elementBytes;
  tile.lhsStep = slice.packLhs ? tileRows * unitBytes : unitBytes;
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

} // namespace

bool canTileGemm(plan::DType type) {
  constexpr int bf16 = dnnl_cpu_isa_avx512_core_bf16;
  return type == plan::DType::bf16 &&
         (dnnl_get_effective_cpu_isa() & bf16) == bf16;
}

bool hasTileGemm(plan::DType type) {
  constexpr int matrix =
      dnnl_cpu_isa_avx512_core_amx & ~dnnl_cpu_isa_avx512_core_bf16;
  return canTileGemm(type) && (dnnl_get_effective_cpu_isa() & matrix) == 0;
}

std::unique_ptr<Gemm> createTileGemm(const GemmSpec &spec) {
  return std::make_unique<TileGemm>(spec);
}

uint64_t tileGemmScratch(const GemmSpec &spec) {
  return TileGemm(spec).scratchBytes();
}

void runTileGemm(const GemmSpec &spec, const std::byte *lhs,
                 const std::byte *rhs, std::byte *dst, std::byte *scratch) {
  TileGemm(spec).run(0, lhs, rhs, dst, nullptr, scratch, 1);
}

} // namespace meshwork::runtime::cpu
