#include "test/Emulator/Snippet.h"

namespace meshwork::ptx {
namespace {
using u16 = uint16_t;
using s16 = int16_t;
using u32 = uint32_t;
using s32 = int32_t;
using u64 = uint64_t;
using s64 = int64_t;
using u128 = unsigned __int128;
using s128 = __int128;

TEST(Integer, Sums) {
  Snippet<u32, u32, u32>("add.u32 %d, %a, %b;").check([](u32 a, u32 b) {
    return a + b;
  });
  Snippet<u64, u64, u64>("sub.s64 %d, %a, %b;").check([](u64 a, u64 b) {
    return a - b;
  });
  Snippet<u16, u16, u16>("sub.s16 %d, %a, %b;").check([](u16 a, u16 b) {
    return u16(a - b);
  });
  Snippet<s32, s32, s32>("add.sat.s32 %d, %a, %b;").check([](s32 a, s32 b) {
    return std::clamp<s64>(s64(a) + b, INT32_MIN, INT32_MAX);
  });
}

TEST(Integer, CarriesGoFromWordToWord) {
  Snippet<u64, u64, u64>("mov.b64 {%r1, %r2}, %a; mov.b64 {%r3, %r4}, %b;\n"
                         "add.cc.u32 %r5, %r1, %r3; addc.u32 %r6, %r2, %r4;\n"
                         "mov.b64 %d, {%r5, %r6};")
      .check([](u64 a, u64 b) { return a + b; });
  Snippet<u64, u64, u64>("mov.b64 {%r1, %r2}, %a; mov.b64 {%r3, %r4}, %b;\n"
                         "sub.cc.u32 %r5, %r1, %r3; subc.u32 %r6, %r2, %r4;\n"
                         "mov.b64 %d, {%r5, %r6};")
      .check([](u64 a, u64 b) { return a - b; });
}

TEST(Integer, Products) {
  Snippet<u32, u32, u32>("mul.lo.s32 %d, %a, %b;").check([](u32 a, u32 b) {
    return a * b;
  });
  Snippet<u16, u16, u16>("mul.lo.s16 %d, %a, %b;").check([](u16 a, u16 b) {
    return u16(u32(a) * b);
  });
  Snippet<u16, u16, u16>("mul.hi.u16 %d, %a, %b;").check([](u16 a, u16 b) {
    return u16(u32(a) * b >> 16);
  });
  Snippet<s32, s32, s32>("mul.hi.s32 %d, %a, %b;").check([](s32 a, s32 b) {
    return s32(s64(a) * b >> 32);
  });
  Snippet<u64, u64, u64>("mul.hi.u64 %d, %a, %b;").check([](u64 a, u64 b) {
    return u64(u128(a) * b >> 64);
  });
  Snippet<s64, s64, s64>("mul.hi.s64 %d, %a, %b;").check([](s64 a, s64 b) {
    return s64(s128(a) * b >> 64);
  });
  Snippet<s64, s32, s32>("mul.wide.s32 %d, %a, %b;").check([](s32 a, s32 b) {
    return s64(a) * b;
  });
  Snippet<u32, u16, u16>("mul.wide.u16 %d, %a, %b;").check([](u16 a, u16 b) {
    return u32(a) * b;
  });
  Snippet<u32, u32, u32, u32>("mad.lo.s32 %d, %a, %b, %c;")
      .check([](u32 a, u32 b, u32 c) { return a * b + c; });
  Snippet<u64, u32, u32, u64>("mad.wide.u32 %d, %a, %b, %c;")
      .check([](u32 a, u32 b, u64 c) { return u64(a) * b + c; });
  Snippet<u32, u32, u32, u32>("mad.hi.u32 %d, %a, %b, %c;")
      .check([](u32 a, u32 b, u32 c) { return u32(u64(a) * b >> 32) + c; });
}

TEST(Integer, Quotients) {
  Snippet<s32, s32, s32>("div.s32 %d, %a, %b;").check([](s32 a, s32 b) {
    return b == 0 ? -1 : s32(s64(a) / b);
  });
  Snippet<s64, s64, s64>("rem.s64 %d, %a, %b;").check([](s64 a, s64 b) {
    return b == 0 ? a : s64(s128(a) % b);
  });
  Snippet<u64, u64, u64>("div.u64 %d, %a, %b;").check([](u64 a, u64 b) {
    return b == 0 ? ~0ull : a / b;
  });
}

TEST(Integer, Extremes) {
  Snippet<s32, s32, s32>("min.s32 %d, %a, %b;").check([](s32 a, s32 b) {
    return std::min(a, b);
  });
  Snippet<u64, u64, u64>("max.u64 %d, %a, %b;").check([](u64 a, u64 b) {
    return std::max(a, b);
  });
  Snippet<s16, s16>("abs.s16 %d, %a;").check([](s16 a) {
    return s16(a < 0 ? -a : a);
  });
  Snippet<u32, u32>("neg.s32 %d, %a;").check([](u32 a) { return -a; });
}

TEST(Bits, Logic) {
  Snippet<u32, u32, u32>("and.b32 %d, %a, %b;").check([](u32 a, u32 b) {
    return a & b;
  });
  Snippet<u64, u64, u64>("or.b64 %d, %a, %b;").check([](u64 a, u64 b) {
    return a | b;
  });
  Snippet<u16, u16, u16>("xor.b16 %d, %a, %b;").check([](u16 a, u16 b) {
    return u16(a ^ b);
  });
  Snippet<u32, u32>("not.b32 %d, %a;").check([](u32 a) { return ~a; });
  Snippet<u32, u32>("cnot.b32 %d, %a;").check([](u32 a) { return !a; });
  Snippet<u32, u32, u32, u32>("lop3.b32 %d, %a, %b, %c, 0xE8;")
      .check([](u32 a, u32 b, u32 c) { return (a & b) | (a & c) | (b & c); });
  Snippet<u32, u32, u32, u32>("lop3.b32 %d, %a, %b, %c, 0x2D;")
      .check([](u32 a, u32 b, u32 c) { return a ^ (b | ~c); });
}

TEST(Bits, Shifts) {
  Snippet<u32, u32, u32>("shl.b32 %d, %a, %b;").check([](u32 a, u32 n) {
    return n < 32 ? a << n : 0;
  });
  Snippet<u32, u32, u32>("shr.u32 %d, %a, %b;").check([](u32 a, u32 n) {
    return n < 32 ? a >> n : 0;
  });
  Snippet<s32, s32, u32>("shr.s32 %d, %a, %b;").check([](s32 a, u32 n) {
    return a >> std::min(n, 31u);
  });
  Snippet<s64, s64, u32>("shr.s64 %d, %a, %b;").check([](s64 a, u32 n) {
    return a >> std::min(n, 63u);
  });
  Snippet<u16, u16, u32>("shr.u16 %d, %a, %b;").check([](u16 a, u32 n) {
    return n < 16 ? a >> n : 0;
  });
  Snippet<u32, u32, u32, u32>("shf.l.wrap.b32 %d, %a, %b, %c;")
      .check([](u32 a, u32 b, u32 n) {
        return u32(((u64(b) << 32 | a) << (n & 31)) >> 32);
      });
  Snippet<u32, u32, u32, u32>("shf.r.clamp.b32 %d, %a, %b, %c;")
      .check([](u32 a, u32 b, u32 n) {
        return u32((u64(b) << 32 | a) >> std::min(n, 32u));
      });
}

TEST(Bits, Counts) {
  Snippet<u32, u32>("popc.b32 %d, %a;").check([](u32 a) {
    return __builtin_popcount(a);
  });
  Snippet<u32, u64>("popc.b64 %d, %a;").check([](u64 a) {
    return __builtin_popcountll(a);
  });
  Snippet<u32, u32>("clz.b32 %d, %a;").check([](u32 a) {
    return a ? __builtin_clz(a) : 32;
  });
  Snippet<u32, u32>("bfind.u32 %d, %a;").check([](u32 a) {
    return a ? 31 - __builtin_clz(a) : -1;
  });
  Snippet<u32, s32>("bfind.s32 %d, %a;").check([](s32 a) {
    u32 x = u32(a < 0 ? ~a : a);
    return x ? 31 - __builtin_clz(x) : -1;
  });
  Snippet<u32, u32>("brev.b32 %d, %a;").check([](u32 a) {
    return __builtin_bitreverse32(a);
  });
}

/// As the ISA writes it: bit by bit.
template <class T> T bitByBit(T a, u32 b, u32 c) {
  u32 position = b & 255, length = c & 255, top = 8 * sizeof(T) - 1;
  auto bit = [&](u32 i) { return T(u64(a) >> i & 1); };
  T sign = std::is_unsigned_v<T> || length == 0
               ? T(0)
               : bit(std::min(position + length - 1, top));
  T result = 0;
  for (u32 i = 0; i <= top; ++i) {
    T value = i < length && position + i <= top ? bit(position + i) : sign;
    result = T(u64(result) | u64(value & 1) << i);
  }
  return result;
}
TEST(Bits, Fields) {
  Snippet<u32, u32, u32, u32>("bfe.u32 %d, %a, %b, %c;").check(bitByBit<u32>);
  Snippet<s32, s32, u32, u32>("bfe.s32 %d, %a, %b, %c;").check(bitByBit<s32>);
  Snippet<s64, s64, u32, u32>("bfe.s64 %d, %a, %b, %c;").check(bitByBit<s64>);
  Snippet<u32, u32, u32, u32>("bfi.b32 %d, %a, %b, %c, 5;")
      .check([](u32 a, u32 b, u32 position) {
        for (u32 i = 0; i < 5; ++i) {
          u32 at = (position & 255) + i;
          if (at < 32)
            b = (b & ~(1u << at)) | (a >> i & 1) << at;
        }
        return b;
      });
}

TEST(Bits, BytesArePermuted) {
  Snippet<u32, u32, u32, u32>("prmt.b32 %d, %a, %b, %c;")
      .check([](u32 a, u32 b, u32 c) {
        u32 result = 0;
        for (int i = 0; i < 4; ++i) {
          u32 select = c >> (4 * i) & 15;
          u32 byte = (select & 4 ? b : a) >> (8 * (select & 3)) & 255;
          if (select & 8)
            byte = byte & 0x80 ? 0xff : 0;
          result |= byte << (8 * i);
        }
        return result;
      });
}

} // namespace
} // namespace meshwork::ptx
