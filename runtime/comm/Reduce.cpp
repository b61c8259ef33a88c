#include "runtime/comm/Reduce.h"
#include <algorithm>
#include <cstring>

namespace meshwork::runtime {
namespace {
/// Accumulators of one block stay in the first-level cache.
constexpr int64_t blockElements = 2048;

struct F32 {
  using Stored = float;
  static float load(float value) { return value; }
  static float store(float value) { return value; }
};

struct Bf16 {
  using Stored = uint16_t;
  static float load(uint16_t bits) {
    uint32_t wide = uint32_t{bits} << 16;
    float value;
    std::memcpy(&value, &wide, sizeof(value));
    return value;
  }
  static uint16_t store(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    // Rounding up a NaN could turn it into an infinity.
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    uint32_t quiet = bits >> 16 | 0x40u;
    return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet
                                                                    : rounded);
  }
};

template <typename Format, plan::Reduction reduction>
void reduceBlock(absl::Span<const std::byte *const> sources,
                 absl::Span<std::byte *const> targets, int64_t begin,
                 int64_t count) {
  using Stored = typename Format::Stored;
  auto at = [begin](const std::byte *base) {
    return reinterpret_cast<const Stored *>(base) + begin;
  };
  float sum[blockElements];
  const Stored *first = at(sources[0]);
  for (int64_t i = 0; i < count; ++i)
    sum[i] = Format::load(first[i]);
  for (const std::byte *source : sources.subspan(1)) {
    const Stored *next = at(source);
    for (int64_t i = 0; i < count; ++i) {
      float value = Format::load(next[i]);
      if constexpr (reduction == plan::Reduction::sum)
        sum[i] += value;
      else
        sum[i] = value > sum[i] || value != value ? value : sum[i];
    }
  }
  Stored result[blockElements];
  for (int64_t i = 0; i < count; ++i)
    result[i] = Format::store(sum[i]);
  for (std::byte *target : targets)
    std::memcpy(reinterpret_cast<Stored *>(target) + begin, result,
                static_cast<size_t>(count) * sizeof(Stored));
}

template <typename Format, plan::Reduction reduction>
void reduceAll(absl::Span<const std::byte *const> sources,
               absl::Span<std::byte *const> targets, int64_t begin,
               int64_t end) {
  for (int64_t at = begin; at < end; at += blockElements)
    reduceBlock<Format, reduction>(sources, targets, at,
                                   std::min(blockElements, end - at));
}
} // namespace

void reduceRange(plan::DType dtype, plan::Reduction reduction,
                 absl::Span<const std::byte *const> sources,
                 absl::Span<std::byte *const> targets, int64_t begin,
                 int64_t end) {
  constexpr plan::Reduction sum = plan::Reduction::sum,
                            max = plan::Reduction::max;
  if (dtype == plan::DType::f32)
    reduction == sum ? reduceAll<F32, sum>(sources, targets, begin, end)
                     : reduceAll<F32, max>(sources, targets, begin, end);
  else
    reduction == sum ? reduceAll<Bf16, sum>(sources, targets, begin, end)
                     : reduceAll<Bf16, max>(sources, targets, begin, end);
}

} // namespace meshwork::runtime
