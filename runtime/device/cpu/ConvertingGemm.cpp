#include "runtime/device/cpu/ConvertingGemm.h"

#include <algorithm>

#include "runtime/device/cpu/Bf16.h"
#include "runtime/device/cpu/Operation.h"
#include "runtime/machine/Float8.h"

namespace meshwork::runtime::cpu {
namespace {

/// Depth of a slice: two operands of it fit a second-level cache.
constexpr int64_t sliceDepth = 256;

/// All numbers of 8 bits.
struct Float8Table {
  explicit Float8Table(plan::DType type) {
    for (int bits = 0; bits < 256; ++bits)
      values[bits] = fromFloat8(type, static_cast<uint8_t>(bits));
  }
  float values[256];
};

/// Copies a stored [rows, columns] block to dense f32.
template <typename T, typename Convert>
void widen(const T *from, int64_t rows, int64_t columns, int64_t ld, float *to,
           Convert convert) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      to[r * columns + c] = convert(from[r * ld + c]);
}

void widen(plan::DType type, const std::byte *from, int64_t rows,
           int64_t columns, int64_t ld, float *to) {
  if (type == plan::DType::bf16)
    return widen(reinterpret_cast<const Bf16 *>(from), rows, columns, ld, to,
                 [](Bf16 value) { return toFloat(value); });
  static const Float8Table e4m3(plan::DType::e4m3), e5m2(plan::DType::e5m2);
  const float *values = type == plan::DType::e4m3 ? e4m3.values : e5m2.values;
  widen(reinterpret_cast<const uint8_t *>(from), rows, columns, ld, to,
        [=](uint8_t bits) { return values[bits]; });
}

class ConvertingGemm final : public Gemm {
public:
  explicit ConvertingGemm(const GemmSpec &spec) : spec(spec) {}

  absl::Status describe() {
    int64_t depth = std::min(sliceDepth, spec.k);
    MESHWORK_ASSIGN_OR_RETURN(first, create(sliceSpec(depth, false)));
    if (spec.k > depth)
      MESHWORK_ASSIGN_OR_RETURN(next, create(sliceSpec(depth, true)));
    if (spec.k % depth != 0)
      MESHWORK_ASSIGN_OR_RETURN(last, create(sliceSpec(spec.k % depth, true)));
    return absl::OkStatus();
  }

  uint64_t scratchBytes() const override {
    uint64_t inner = first->scratchBytes();
    for (const auto *gemm : {&next, &last})
      if (*gemm)
        inner = std::max(inner, (*gemm)->scratchBytes());
    return lhsBytes() + rhsBytes() + sumBytes() + inner;
  }
  uint64_t packedBytes() const override { return 0; }

  absl::Status generate(int threads) override {
    for (auto *gemm : {&first, &next, &last})
      if (*gemm)
        MESHWORK_RETURN_IF_ERROR((*gemm)->generate(threads));
    return absl::OkStatus();
  }

  void pack(int, const std::byte *, std::byte *, std::byte *) override {}

  void run(int thread, const std::byte *lhs, const std::byte *rhs,
           std::byte *dst, const std::byte *bias, std::byte *scratch,
           float scale) override {
    std::byte *lhsWide = scratch, *rhsWide = lhsWide + lhsBytes();
    std::byte *sums = rhsWide + rhsBytes(), *inner = sums + sumBytes();
    for (int64_t k = 0; k < spec.k; k += sliceDepth) {
      int64_t depth = std::min(sliceDepth, spec.k - k);
      widenSlice(spec.type, lhs, spec.m, k, depth, spec.lhsLd,
                 !spec.lhsTransposed, lhsWide);
      widenSlice(rhsType(), rhs, spec.n, k, depth, spec.rhsLd,
                 spec.rhsTransposed, rhsWide);
      Gemm &gemm = k == 0 ? *first : depth == sliceDepth ? *next : *last;
      gemm.run(thread, lhsWide, rhsWide, sums, nullptr, inner);
    }
    finish(reinterpret_cast<const float *>(sums), dst, bias, scale);
  }

private:
  GemmSpec sliceSpec(int64_t depth, bool accumulate) const {
    GemmSpec slice{.m = spec.m, .n = spec.n, .k = depth};
    slice.lhsTransposed = spec.lhsTransposed;
    slice.rhsTransposed = spec.rhsTransposed;
    slice.lhsLd = spec.lhsTransposed ? spec.m : depth;
    slice.rhsLd = spec.rhsTransposed ? depth : spec.n;
    slice.dstLd = spec.n;
    slice.accumulate = accumulate;
    return slice;
  }

  plan::DType rhsType() const {
    return plan::isFloat8(spec.type) ? spec.rhsType : spec.type;
  }
  uint64_t lhsBytes() const {
    return alignUp(spec.m * std::min(sliceDepth, spec.k) * 4);
  }
  uint64_t rhsBytes() const {
    return alignUp(spec.n * std::min(sliceDepth, spec.k) * 4);
  }
  uint64_t sumBytes() const { return alignUp(spec.m * spec.n * 4); }

  /// An operand stored [other, k] when `kInner`, else [k, other].
  static void widenSlice(plan::DType type, const std::byte *from, int64_t other,
                         int64_t k, int64_t depth, int64_t ld, bool kInner,
                         std::byte *to) {
    int64_t bytes = plan::bytesOf(type);
    float *wide = reinterpret_cast<float *>(to);
    if (kInner)
      widen(type, from + k * bytes, other, depth, ld, wide);
    else
      widen(type, from + k * ld * bytes, depth, other, ld, wide);
  }

  float biasAt(const std::byte *bias, int64_t n) const {
    if (!spec.hasBias)
      return 0;
    return spec.biasType == plan::DType::bf16
               ? toFloat(reinterpret_cast<const Bf16 *>(bias)[n])
               : reinterpret_cast<const float *>(bias)[n];
  }

  template <typename T>
  void finishAs(const float *sums, T *dst, const std::byte *bias,
                float scale) const {
    for (int64_t m = 0; m < spec.m; ++m)
      for (int64_t n = 0; n < spec.n; ++n) {
        T &to = dst[m * spec.dstLd + n];
        float value = scale * sums[m * spec.n + n] + biasAt(bias, n);
        assign(to, spec.accumulate ? value + toFloat(to) : value);
      }
  }

  void finish(const float *sums, std::byte *dst, const std::byte *bias,
              float scale) const {
    if (spec.dstType == plan::DType::bf16)
      finishAs(sums, reinterpret_cast<Bf16 *>(dst), bias, scale);
    else
      finishAs(sums, reinterpret_cast<float *>(dst), bias, scale);
  }

  GemmSpec spec;
  std::unique_ptr<Gemm> first, next, last;
};

} // namespace

absl::StatusOr<std::unique_ptr<Gemm>>
createConvertingGemm(const GemmSpec &spec) {
  auto gemm = std::make_unique<ConvertingGemm>(spec);
  MESHWORK_RETURN_IF_ERROR(gemm->describe());
  return gemm;
}

} // namespace meshwork::runtime::cpu
