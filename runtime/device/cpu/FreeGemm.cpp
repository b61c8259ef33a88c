#include "runtime/device/cpu/FreeGemm.h"

#include <cstring>

#include "runtime/device/cpu/SliceGemm.h"
#include "runtime/device/cpu/TileGemm.h"

namespace meshwork::runtime::cpu {
namespace {

/// What the tiles of bf16 pack of a transposed lhs serves so many columns.
constexpr int64_t tileColumns = 768;

void clear(const GemmSpec &spec, std::byte *dst) {
  int64_t bytes = plan::bytesOf(spec.dstType);
  for (int64_t row = 0; row < spec.m; ++row)
    std::memset(dst + row * spec.dstLd * bytes, 0, spec.n * bytes);
}
} // namespace

int64_t freeGemmColumns(plan::DType type) {
  return canTileGemm(type) ? tileColumns : sliceGemmColumns;
}

uint64_t freeGemmScratch(const GemmSpec &largest) {
  return canTileGemm(largest.type) ? tileGemmScratch(largest)
                                   : sliceGemmScratch(largest);
}

void runFreeGemm(const GemmSpec &spec, const std::byte *lhs,
                 const std::byte *rhs, std::byte *dst, std::byte *scratch) {
  if (spec.m == 0 || spec.n == 0 || (spec.k == 0 && spec.accumulate))
    return;
  if (spec.k == 0)
    return clear(spec, dst);
  if (canTileGemm(spec.type))
    return runTileGemm(spec, lhs, rhs, dst, scratch);
  runSliceGemm(spec, lhs, rhs, dst, scratch);
}

} // namespace meshwork::runtime::cpu
