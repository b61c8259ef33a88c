// Sixteen lanes of arithmetic, for files that are compiled once per instruction
// set. Lanes and order are fixed, so two machines differ at most in whether a
// multiply-add rounds once or twice.
//
// Everything has internal linkage: were it shared, the linker could keep the
// copy of the widest instruction set for all.
#pragma once

#include <cstdint>
#include <cstring>

#include "runtime/device/cpu/Bf16.h"

namespace meshwork::runtime::cpu {
namespace {

constexpr int64_t numLanes = 16;
using Floats = float __attribute__((ext_vector_type(16)));
using Ints = int32_t __attribute__((ext_vector_type(16)));
using Words = uint32_t __attribute__((ext_vector_type(16)));
using WideWords = uint64_t __attribute__((ext_vector_type(8)));
using HalfWords = uint16_t __attribute__((ext_vector_type(16)));

#define MESHWORK_INLINE inline __attribute__((always_inline))

template <typename V> MESHWORK_INLINE V loadAs(const void *from) {
  V v;
  std::memcpy(&v, from, sizeof(V));
  return v;
}
template <typename V> MESHWORK_INLINE void storeAs(void *to, V v) {
  std::memcpy(to, &v, sizeof(V));
}
template <typename To, typename From> MESHWORK_INLINE To castTo(From v) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, v);
}

/// `mask` lanes are all ones or zero.
MESHWORK_INLINE Floats select(Ints mask, Floats yes, Floats no) {
  return castTo<Floats>((castTo<Ints>(yes) & mask) |
                        (castTo<Ints>(no) & ~mask));
}
MESHWORK_INLINE Floats fma(Floats a, Floats b, Floats c) {
#ifdef __FMA__
  return __builtin_elementwise_fma(a, b, c);
#else
  return a * b + c;
#endif
}

/// One instruction; where `a` is a NaN it is `b`.
MESHWORK_INLINE Floats largerOf(Floats a, Floats b) { return a > b ? a : b; }

MESHWORK_INLINE float horizontalSum(Floats v) {
  auto eight = v.lo + v.hi;
  auto four = eight.lo + eight.hi;
  auto two = four.lo + four.hi;
  return two.x + two.y;
}

/// Lanes of `a` and `b` in turns of `half`: on side 0 the even turns of `a`,
/// each followed by that of `b`; on side 1 the odd ones.
template <int half, int side, typename V> MESHWORK_INLINE V turnsOf(V a, V b) {
  // Lanes of `a` count from 0, of `b` from 16.
  constexpr auto from = [](int lane) {
    bool isOfB = lane & half;
    return lane + (isOfB ? numLanes - half : 0) + (side ? half : 0);
  };
  return __builtin_shufflevector(a, b, from(0), from(1), from(2), from(3),
                                 from(4), from(5), from(6), from(7), from(8),
                                 from(9), from(10), from(11), from(12),
                                 from(13), from(14), from(15));
}

template <int half, typename Combine>
MESHWORK_INLINE void combineHalves(Floats *rows, Combine combine) {
#pragma clang loop unroll(full)
  for (int r = 0; r < half; ++r)
    rows[r] = combine(turnsOf<half, 0>(rows[r], rows[r + half]),
                      turnsOf<half, 1>(rows[r], rows[r + half]));
}

/// Lane r: all lanes of rows[r] combined, half with half, as horizontalSum()
/// does. Overwrites the sixteen rows. A third of the shuffles of sixteen sums.
template <typename Combine>
MESHWORK_INLINE Floats horizontal(Floats *rows, Combine combine) {
  combineHalves<8>(rows, combine);
  combineHalves<4>(rows, combine);
  combineHalves<2>(rows, combine);
  combineHalves<1>(rows, combine);
  return rows[0];
}

/// e^x for x <= 88, NaN for NaN, zero below the smallest normal number. Let
/// x = n ln 2 + r with |r| <= ln 2 / 2; ln 2 in two parts, the first short
/// enough that n times it is exact. Then e^r = 1 + r + r^2 q(r), q of degree 4
/// fitted to the least maximum of the relative error. That is 3.1e-9, a
/// twentieth of f32's unit roundoff; with rounding below 1.5 ulp (AttentionTest
/// measures).
MESHWORK_INLINE Floats exponential(Floats x) {
  constexpr float lowest = -87.33654f; // ln 2^-126
  // 1.5 * 2^23, which rounds what it is added to, and the exponent's bias.
  constexpr float rounder = 12582912.0f + 127;
  Ints underflow = x < lowest;
  Floats shifted = fma(x, Floats(1.44269504f), Floats(rounder));
  Floats n = shifted - rounder;
  Floats r = fma(n, Floats(-0x1.62e4p-1f), x);
  r = fma(n, Floats(-0x1.7f7d1cp-20f), r);
  Floats q = fma(Floats(0x1.6a23dp-10f), r, Floats(0x1.123a2p-7f));
  q = fma(q, r, Floats(0x1.5558f2p-5f));
  q = fma(q, r, Floats(0x1.555492p-3f));
  q = fma(q, r, Floats(0x1.fffffcp-2f));
  Floats power = fma(fma(q, r, Floats(1.0f)), r, Floats(1.0f));
  // The low bits of `shifted` hold n + 127; a product keeps a NaN, which adding
  // to the exponent might not.
  Ints scale = castTo<Ints>(shifted) << 23;
  return select(underflow, Floats(0.0f), power * castTo<Floats>(scale));
}

/// Up to |x| = 0.625 it is x + x^3 p(x^2), p of degree 4 fitted to the least
/// maximum of the relative error, 9e-9. Above, 1 - 2 / (e^2|x| + 1) loses no
/// digits; from 10 on that is 1.
MESHWORK_INLINE Floats hyperbolicTangent(Floats x) {
  Words sign = castTo<Words>(x) & 0x80000000u;
  Floats size = castTo<Floats>(castTo<Words>(x) ^ sign), square = x * x;
  Floats bounded = select(size > 10.0f, Floats(10.0f), size);
  Floats large = 1.0f - 2.0f / (exponential(bounded + bounded) + 1.0f);
  Floats p = fma(Floats(-0x1.75e1c2p-8f), square, Floats(0x1.522698p-6f));
  p = fma(p, square, Floats(-0x1.b83c5ap-5f));
  p = fma(p, square, Floats(0x1.110726p-3f));
  p = fma(p, square, Floats(-0x1.555532p-2f));
  return select(size <= 0.625f, fma(p * square, x, x),
                castTo<Floats>(castTo<Words>(large) | sign));
}

MESHWORK_INLINE Floats load(const float *from) { return loadAs<Floats>(from); }
MESHWORK_INLINE Floats load(const Bf16 *from) {
  Words wide = __builtin_convertvector(loadAs<HalfWords>(from), Words);
  return castTo<Floats>(wide << 16);
}
MESHWORK_INLINE void store(float *to, Floats v) { storeAs(to, v); }
MESHWORK_INLINE void store(Bf16 *to, Floats v) {
#ifdef __AVX512BF16__
  // One instruction. It takes subnormal numbers for zero, the code below not.
  using Halves = __bf16 __attribute__((ext_vector_type(16)));
  storeAs(to, __builtin_convertvector(v, Halves));
#else
  Words bits = castTo<Words>(v);
  Words rounded = bits + 0x7fff + ((bits >> 16) & 1);
  Ints isNan = v != v;
  Words result = (rounded & castTo<Words>(~isNan)) |
                 ((bits | 0x400000) & castTo<Words>(isNan));
  storeAs(to, __builtin_convertvector(result >> 16, HalfWords));
#endif
}

} // namespace
} // namespace meshwork::runtime::cpu
