// What device code of the runtime shares: compiled without CUDA's headers.
#pragma once

#define DEVICE __attribute__((device)) inline
#define KERNEL extern "C" __attribute__((global)) void

namespace meshwork::runtime::cuda {
using U8 = unsigned char;
using U16 = unsigned short;
using U32 = unsigned;
using U64 = unsigned long long;

struct alignas(16) U128 {
  U32 words[4];
};

DEVICE int thread() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE int blockOfGrid() { return __nvvm_read_ptx_sreg_ctaid_x(); }

DEVICE float asFloat(U32 bits) { return __builtin_bit_cast(float, bits); }
DEVICE U32 asBits(float value) { return __builtin_bit_cast(U32, value); }

/// As the host rounds (runtime/comm/Reduce.cpp): nearest, ties to even, NaN
/// stays NaN.
DEVICE U32 roundToBf16(float value) {
  U32 bits = asBits(value);
  U32 rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  return (bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 | 0x40u) : rounded;
}

/// How a unit is taken apart into numbers.
struct F32 {
  using Unit = U32;
  using Wide = float;
  static constexpr int count = 1;
  DEVICE static float get(Unit unit, int) { return asFloat(unit); }
  DEVICE static Unit join(const float *values) { return asBits(values[0]); }
};
struct F32x4 {
  using Unit = U128;
  using Wide = float;
  static constexpr int count = 4;
  DEVICE static float get(const Unit &unit, int i) {
    return asFloat(unit.words[i]);
  }
  DEVICE static Unit join(const float *values) {
    return {{asBits(values[0]), asBits(values[1]), asBits(values[2]),
             asBits(values[3])}};
  }
};
struct Bf16 {
  using Unit = U16;
  using Wide = float;
  static constexpr int count = 1;
  DEVICE static float get(Unit unit, int) { return asFloat(U32{unit} << 16); }
  DEVICE static Unit join(const float *values) {
    return static_cast<Unit>(roundToBf16(values[0]));
  }
};
struct Bf16x8 {
  using Unit = U128;
  using Wide = float;
  static constexpr int count = 8;
  DEVICE static float get(const Unit &unit, int i) {
    U32 word = unit.words[i / 2];
    return asFloat(i % 2 ? word & 0xffff0000u : word << 16);
  }
  DEVICE static Unit join(const float *values) {
    Unit unit;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      unit.words[i] =
          roundToBf16(values[2 * i]) | roundToBf16(values[2 * i + 1]) << 16;
    return unit;
  }
};
struct I32 {
  using Unit = U32;
  using Wide = int;
  static constexpr int count = 1;
  DEVICE static int get(Unit unit, int) { return static_cast<int>(unit); }
  DEVICE static Unit join(const int *values) {
    return static_cast<U32>(values[0]);
  }
};
struct I32x4 {
  using Unit = U128;
  using Wide = int;
  static constexpr int count = 4;
  DEVICE static int get(const Unit &unit, int i) {
    return static_cast<int>(unit.words[i]);
  }
  DEVICE static Unit join(const int *values) {
    return {{static_cast<U32>(values[0]), static_cast<U32>(values[1]),
             static_cast<U32>(values[2]), static_cast<U32>(values[3])}};
  }
};

} // namespace meshwork::runtime::cuda
