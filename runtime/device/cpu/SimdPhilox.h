// Philox.h's function for sixteen neighbours at a time. See Simd.h.
#pragma once

#include "runtime/device/cpu/Philox.h"
#include "runtime/device/cpu/Simd.h"

namespace meshwork::runtime::cpu {
namespace {

struct WordPair {
  Words high, low;
};

MESHWORK_INLINE WordPair multiplyWide(Words a, uint32_t b) {
  WideWords product = __builtin_convertvector(a, WideWords) * uint64_t{b};
  return {__builtin_convertvector(product >> 32, Words),
          __builtin_convertvector(product, Words)};
}

/// Words of the elements index, index + 1, ... index + 15.
MESHWORK_INLINE Words philoxWords(const PhiloxStream &stream, uint64_t index) {
  uint32_t low = static_cast<uint32_t>(index);
  Words c0 = castTo<Words>(laneIndex()) + low;
  Words carry = castTo<Words>(c0 < Words(low)) & 1;
  Words c1 = carry + static_cast<uint32_t>(index >> 32);
  Words c2 = Words(stream.step), c3 = Words(0u);
  uint32_t k0 = stream.seed, k1 = stream.stream;
  for (int round = 0; round < 10; ++round) {
    WordPair a = multiplyWide(c0, 0xD2511F53u);
    WordPair b = multiplyWide(c2, 0xCD9E8D57u);
    c0 = b.high ^ c1 ^ k0;
    c1 = b.low;
    c2 = a.high ^ c3 ^ k1;
    c3 = a.low;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c0;
}

} // namespace
} // namespace meshwork::runtime::cpu
