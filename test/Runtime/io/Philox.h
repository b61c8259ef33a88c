// Philox4x32-10 as its paper gives it (Salmon et al., SC'11), so that tests do
// not believe the library that the code uses.
#pragma once

#include <array>
#include <cstdint>

namespace meshwork::runtime {

inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c,
                                      std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    c = {uint32_t(b >> 32) ^ c[1] ^ k[0], uint32_t(b),
         uint32_t(a >> 32) ^ c[3] ^ k[1], uint32_t(a)};
    k = {k[0] + 0x9E3779B9, k[1] + 0xBB67AE85};
  }
  return c;
}

} // namespace meshwork::runtime
