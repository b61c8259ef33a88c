// Numbers from bench_cpu on a Zen 4 core, over blocks of 128 to 4096 rows by 64
// to 3072 columns, packed and not. The library, oneDNN, blocks for the caches
// itself and loses a tenth in panels of 128 columns and less. So blocks here
// are as large as balance allows. Packing gains 3 to 6 % where 1024 rows or
// more share a panel, and loses a tenth where 256 do; behind a transposed lhs
// it gains nothing.
#include "runtime/device/cpu/MatmulBlocking.h"

#include <algorithm>

#include "runtime/device/cpu/GemmTiles.h"
#include "runtime/device/cpu/Operation.h"

namespace meshwork::runtime::cpu {
namespace {

constexpr int64_t maxRows = 512, maxColumns = 768;
constexpr int64_t minRows = 128, minColumns = 192;
constexpr int64_t rowGrain = 16, columnGrain = 64; // oneDNN's kernels' steps
/// Blocks per product where its size allows them: up to eight threads share
/// evenly, and two or four whatever the remainder.
constexpr int64_t wantedBlocks = 8;
constexpr int64_t minRowsToPack = 1024;
/// Of a packed panel, held once per thread.
constexpr int64_t maxPanelBytes = int64_t{8} << 20;

/// The even part of `size` in as few parts of at most `most` as possible.
int64_t evenPart(int64_t size, int64_t most, int64_t grain) {
  int64_t part = ceilDiv(size, ceilDiv(size, most));
  return std::min(size, ceilDiv(part, grain) * grain);
}

} // namespace

MatmulBlocking chooseMatmulBlocking(const MatmulShape &shape) {
  MatmulBlocking blocking;
  blocking.packRhs = shape.m >= minRowsToPack && !shape.lhsTransposed;
  int64_t columns = maxColumns;
  if (blocking.packRhs)
    columns = std::clamp(maxPanelBytes / (shape.k * shape.elementBytes) /
                             columnGrain * columnGrain,
                         minColumns, maxColumns);
  blocking.m = evenPart(shape.m, maxRows, rowGrain);
  blocking.n = evenPart(shape.n, columns, columnGrain);
  auto tooFew = [&] {
    return ceilDiv(shape.m, blocking.m) * ceilDiv(shape.n, blocking.n) <
           wantedBlocks;
  };
  while (tooFew() && blocking.m >= 2 * minRows)
    blocking.m = evenPart(shape.m, blocking.m / 2, rowGrain);
  while (tooFew() && blocking.n >= 2 * minColumns)
    blocking.n = evenPart(shape.n, blocking.n / 2, columnGrain);
  return blocking;
}

MatmulBlocking chooseTileBlocking(const MatmulShape &shape, int64_t batch,
                                  int64_t threads) {
  constexpr int64_t rowGrain = tileRows, columnGrain = 16 * tileVectors;
  // With that many products the threads share them evenly enough as they are.
  int64_t parts = batch >= 8 * threads ? 1 : threads;
  auto roundUp = [](int64_t size, int64_t by) {
    return ceilDiv(size, by) * by;
  };
  MatmulBlocking best;
  double least = 0;
  for (int64_t across = 1; across <= parts; ++across) {
    int64_t m = roundUp(ceilDiv(shape.m, across), rowGrain);
    int64_t n = roundUp(ceilDiv(shape.n, parts / across), columnGrain);
    // Cycles for each unit of k: one for sixteen products, about half a one to
    // pack a unit of an operand, wherever it comes from.
    double cycles = static_cast<double>(m) * n / 16 + 0.5 * n;
    if (shape.lhsTransposed)
      cycles += 0.5 * m;
    if (across > 1 && cycles >= least)
      continue;
    least = cycles;
    best.m = std::min(m, shape.m), best.n = std::min(n, shape.n);
  }
  return best;
}

} // namespace meshwork::runtime::cpu
