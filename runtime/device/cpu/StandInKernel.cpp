#include "runtime/device/cpu/StandInKernel.h"

#include <bit>

namespace meshwork::runtime {
namespace {

/// e^x to about 1e-3, between -87 and 87: as many steps as an exact one takes
/// matter here, not its last digits.
inline __attribute__((always_inline)) float exponential(float x) {
  constexpr float rounder = 12582912.0f; // 1.5 * 2^23: adding it rounds
  float shifted = x * 1.44269504f + rounder;
  float r = x - (shifted - rounder) * 0.69314718f;
  float q = ((((0x1.6a23dp-10f * r + 0x1.123a2p-7f) * r + 0x1.5558f2p-5f) * r +
              0x1.555492p-3f) *
                 r +
             0.5f);
  float power = q * r * r + r + 1;
  return std::bit_cast<float>((std::bit_cast<int32_t>(shifted) + 127) << 23) *
         power;
}

inline __attribute__((always_inline)) void gate(const float *gate,
                                                const float *up, float *out,
                                                int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    out[i] = gate[i] / (1 + exponential(-gate[i])) * up[i];
}

// One version for each width of vectors, as plans have code for one. (Not by
// target_clones: its resolvers run before the sanitizers are ready.)
__attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,fma"))) void
gateLevel4(const float *from, const float *up, float *out, int64_t begin,
           int64_t end) {
  gate(from, up, out, begin, end);
}
__attribute__((target("avx2,fma"))) void gateLevel3(const float *from,
                                                    const float *up, float *out,
                                                    int64_t begin,
                                                    int64_t end) {
  gate(from, up, out, begin, end);
}
} // namespace

void gateRows(const float *from, const float *up, float *out, int64_t begin,
              int64_t end) {
  static const auto version = __builtin_cpu_supports("avx512bw") ? gateLevel4
                              : __builtin_cpu_supports("avx2")   ? gateLevel3
                                                                 : gate;
  version(from, up, out, begin, end);
}

} // namespace meshwork::runtime
