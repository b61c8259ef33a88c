#include "runtime/comm/Reduce.h"
#include "runtime/comm/Strided.h"
#include <algorithm>
#include <cstring>

namespace meshwork::runtime {
namespace {
/// Accumulators of one block stay in the first-level cache.
constexpr int64_t blockElements = 2048;

/// What is stored, and what is added up.
struct F32 {
  using Stored = float;
  using Wide = float;
  static float load(float value) { return value; }
  static float store(float value) { return value; }
};

struct Bf16 {
  using Stored = uint16_t;
  using Wide = float;
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

/// Exact; a sum that 32 bits do not hold wraps around.
struct I32 {
  using Stored = int32_t;
  using Wide = int32_t;
  static int32_t load(int32_t value) { return value; }
  static int32_t store(int32_t value) { return value; }
};

float sumOf(float a, float b) { return a + b; }
int32_t sumOf(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) +
                              static_cast<uint32_t>(b));
}

template <plan::Reduction reduction, typename Wide>
void addTo(Wide *sum, Wide value) {
  if constexpr (reduction == plan::Reduction::sum)
    *sum = sumOf(*sum, value);
  else
    *sum = value > *sum || value != value ? value : *sum;
}

/// Calls `body(i, place)` for each element; the common stride is a constant,
/// so that the loop becomes vector code.
template <typename Body>
void forEachElement(int64_t count, int64_t stride, Body body) {
  if (stride == 1)
    for (int64_t i = 0; i < count; ++i)
      body(i, i);
  else
    for (int64_t i = 0; i < count; ++i)
      body(i, i * stride);
}

template <typename Format, plan::Reduction reduction>
void reduceBlock(absl::Span<const std::byte *const> sources, int64_t srcStride,
                 absl::Span<std::byte *const> targets, int64_t dstStride,
                 int64_t begin, int64_t count) {
  using Stored = typename Format::Stored;
  auto at = [=](const std::byte *base) {
    return reinterpret_cast<const Stored *>(base) + begin * srcStride;
  };
  typename Format::Wide sum[blockElements];
  const Stored *first = at(sources[0]);
  forEachElement(count, srcStride, [&](int64_t i, int64_t place) {
    sum[i] = Format::load(first[place]);
  });
  for (const std::byte *source : sources.subspan(1)) {
    const Stored *next = at(source);
    forEachElement(count, srcStride, [&](int64_t i, int64_t place) {
      addTo<reduction>(&sum[i], Format::load(next[place]));
    });
  }
  Stored result[blockElements];
  for (int64_t i = 0; i < count; ++i)
    result[i] = Format::store(sum[i]);
  for (std::byte *target : targets)
    copyRun(reinterpret_cast<const std::byte *>(result), 1,
            target + begin * dstStride * static_cast<int64_t>(sizeof(Stored)),
            dstStride, count, sizeof(Stored));
}

template <typename Format, plan::Reduction reduction>
void reduceAll(absl::Span<const std::byte *const> sources, int64_t srcStride,
               absl::Span<std::byte *const> targets, int64_t dstStride,
               int64_t count) {
  for (int64_t at = 0; at < count; at += blockElements)
    reduceBlock<Format, reduction>(sources, srcStride, targets, dstStride, at,
                                   std::min(blockElements, count - at));
}
} // namespace

void reduceRun(plan::DType dtype, plan::Reduction reduction,
               absl::Span<const std::byte *const> sources, int64_t srcStride,
               absl::Span<std::byte *const> targets, int64_t dstStride,
               int64_t count) {
  constexpr plan::Reduction sum = plan::Reduction::sum,
                            max = plan::Reduction::max;
  auto with = [&](auto reduce) {
    reduce(sources, srcStride, targets, dstStride, count);
  };
  if (dtype == plan::DType::f32)
    reduction == sum ? with(reduceAll<F32, sum>) : with(reduceAll<F32, max>);
  else if (dtype == plan::DType::i32)
    reduction == sum ? with(reduceAll<I32, sum>) : with(reduceAll<I32, max>);
  else
    reduction == sum ? with(reduceAll<Bf16, sum>) : with(reduceAll<Bf16, max>);
}

} // namespace meshwork::runtime
