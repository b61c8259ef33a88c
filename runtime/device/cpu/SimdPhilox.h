// Philox.h's function for sixteen elements of a row at a time. See Simd.h.
#pragma once

#include "runtime/device/cpu/Philox.h"
#include "runtime/device/cpu/Simd.h"

namespace meshwork::runtime::cpu {
namespace {

/// Four counter words of eight elements. Words are the low halves of their
/// lanes; the high halves hold remains, which multiplication does not read.
struct PhiloxLanes {
  WideWords c0, c1, c2, c3;
};

MESHWORK_INLINE void philoxRound(PhiloxLanes &lanes, uint32_t k0, uint32_t k1) {
  constexpr uint64_t lowHalf = 0xffffffffu;
  WideWords a = (lanes.c0 & lowHalf) * uint64_t{0xD2511F53u};
  WideWords b = (lanes.c2 & lowHalf) * uint64_t{0xCD9E8D57u};
  lanes = {(b >> 32) ^ lanes.c1 ^ uint64_t{k0}, b,
           (a >> 32) ^ lanes.c3 ^ uint64_t{k1}, a};
}

/// Words of the elements row + offsets[0], row + offsets[1], ... Even and odd
/// elements go apart, since processors multiply 32 by 32 bits in lanes of 64.
MESHWORK_INLINE Words philoxWords(const PhiloxStream &stream, uint64_t row,
                                  Words offsets) {
  WideWords pairs = castTo<WideWords>(offsets);
  WideWords evenIndex = (pairs & uint64_t{0xffffffffu}) + row;
  WideWords oddIndex = (pairs >> 32) + row;
  WideWords step = WideWords(uint64_t{stream.step});
  WideWords zero = WideWords(uint64_t{0});
  PhiloxLanes even = {evenIndex, evenIndex >> 32, step, zero};
  PhiloxLanes odd = {oddIndex, oddIndex >> 32, step, zero};
  uint32_t k0 = stream.seed, k1 = stream.stream;
  for (int round = 0; round < 10; ++round) {
    philoxRound(even, k0, k1);
    philoxRound(odd, k0, k1);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return castTo<Words>((even.c0 & uint64_t{0xffffffffu}) | (odd.c0 << 32));
}

} // namespace
} // namespace meshwork::runtime::cpu
