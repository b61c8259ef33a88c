#include "runtime/device/cpu/MatmulBlocking.h"

#include <algorithm>

#include "runtime/device/cpu/Operation.h"

namespace meshwork::runtime::cpu {
namespace {

constexpr int64_t maxBlockRows = 256;
/// A packed panel shares a second-level cache with the rows it meets.
constexpr int64_t panelBytes = 512 * 1024;
constexpr int64_t columnGrain = 64; // what oneDNN's kernels step by
/// Enough blocks for eight threads to end within a seventh of each other.
constexpr int64_t wantedBlocks = 16;
/// Fewer rows than this do not pay for packing the panel they meet.
constexpr int64_t minRowsToPack = 1024;

int64_t roundUp(int64_t value, int64_t grain) {
  return ceilDiv(value, grain) * grain;
}

} // namespace

MatmulBlocking chooseMatmulBlocking(int64_t m, int64_t n, int64_t k,
                                    int64_t elementBytes) {
  MatmulBlocking blocking;
  blocking.packRhs = m >= minRowsToPack;
  int64_t rowBlocks = ceilDiv(m, maxBlockRows);
  blocking.m = std::min(m, roundUp(ceilDiv(m, rowBlocks), 16));
  int64_t panel = panelBytes / std::max<int64_t>(1, k * elementBytes);
  int64_t forBalance = ceilDiv(n * rowBlocks, wantedBlocks);
  panel = std::min(panel / columnGrain * columnGrain,
                   roundUp(forBalance, columnGrain));
  blocking.n = std::min(n, std::max(panel, columnGrain));
  return blocking;
}

} // namespace meshwork::runtime::cpu
