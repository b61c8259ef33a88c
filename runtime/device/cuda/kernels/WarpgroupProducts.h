// Products of a warpgroup: 64 rows by tensor cores, from tiles in shared memory
// (Warpgroup.h) and from registers. PTX ISA 8.0, "Asynchronous Warpgroup Level
// Matrix Instructions".
#pragma once

#include "runtime/device/cuda/kernels/Warpgroup.h"

namespace meshwork::runtime::cuda {

// A product is asynchronous: its registers are left alone
// from the begin of its group until the wait for it.

MESHWORK_INLINE void beginProducts() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
MESHWORK_INLINE void commitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Until at most `left` groups run, the last ones.
template <int left> MESHWORK_INLINE void waitForProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}
/// The compiler moves nothing that has to do with these registers across.
template <int R> MESHWORK_INLINE void hold(float (&registers)[R]) {
#pragma unroll
  for (int i = 0; i < R; ++i)
    asm volatile("" : "+f"(registers[i])::"memory");
}
template <int R, int S> MESHWORK_INLINE void hold(U32 (&registers)[R][S]) {
#pragma unroll
  for (int i = 0; i < R; ++i)
#pragma unroll
    for (int j = 0; j < S; ++j)
      asm volatile("" : "+r"(registers[i][j])::"memory");
}

/// What comes before is done before the wait for products that comes behind:
/// ptxas would move the wait up, before arithmetic that can run under them. It
/// moves nothing across a branch. This one is never taken: a power of two, or
/// a sum of some, is not negative.
MESHWORK_INLINE void finishBeforeWait(float power) {
  if (__nvvm_vote_any_sync(~0u, power < 0))
    __builtin_trap();
}

/// Of rows that hold what is summed over ("K-major"): the next eight rows are
/// 1024 bytes on. A step of 16 elements is 32 bytes. Addresses are in units of
/// 16 bytes and below 2^14 of them, so that a description may be moved on by
/// adding.
MESHWORK_INLINE U64 describeRows(U32 address) {
  return U64{1} << 62 | U64{8 * rowBytes >> 4} << 32 | U64{1} << 16 |
         fresh(address) >> 4;
}
/// Of rows over which is summed ("MN-major"), in a tile of `rows`: the next
/// eight are 1024 bytes on, the next 64 columns a column of boxes. A step of 16
/// rows is 2048 bytes.
template <int rows> MESHWORK_INLINE U64 describeColumns(U32 address) {
  return U64{1} << 62 | U64{8 * rowBytes >> 4} << 32 |
         U64{columnBytes(rows) >> 4} << 16 | fresh(address) >> 4;
}

#define MESHWORK_LIST4(how, d, i)                                              \
  how(d[i]), how(d[i + 1]), how(d[i + 2]), how(d[i + 3])
#define MESHWORK_LIST16(how, d, i)                                             \
  MESHWORK_LIST4(how, d, i), MESHWORK_LIST4(how, d, i + 4),                    \
      MESHWORK_LIST4(how, d, i + 8), MESHWORK_LIST4(how, d, i + 12)
#define MESHWORK_LIST32(how, d, i)                                             \
  MESHWORK_LIST16(how, d, i), MESHWORK_LIST16(how, d, i + 16)
#define MESHWORK_LIST64(how, d, i)                                             \
  MESHWORK_LIST32(how, d, i), MESHWORK_LIST32(how, d, i + 32)
#define MESHWORK_SET(x) "=f"(x)
#define MESHWORK_ADD(x) "+f"(x)
#define MESHWORK_NAMES16 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define MESHWORK_NAMES32                                                       \
  MESHWORK_NAMES16                                                             \
  ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define MESHWORK_NAMES64                                                       \
  MESHWORK_NAMES32                                                             \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,"  \
  "%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
/// `adds`: "1" or "0". What stands behind the right operand: scales, and which
/// operands in memory are transposed.
#define MESHWORK_WGMMA(n, count, adds, left, right, behind)                    \
  "{\n\t.reg .pred adds;\n\tsetp.ne.b32 adds, " adds ", 0;\n\t"                \
  "wgmma.mma_async.sync.aligned.m64n" #n                                       \
  "k16.f32.bf16.bf16 {" MESHWORK_NAMES##count "}, " left ", " right            \
                                              ", adds, " behind ";\n\t}"

/// For n = 64 and 128. setProduct16, addProduct16: d (64 x n) = or += a
/// (64 x 16) b (16 x n), both in memory, their rows hold what is summed. The
/// third: `a` in registers, and rows of `b` are summed over. The names are
/// those of the operands behind d.
#define MESHWORK_PRODUCTS(n, count, A, B, C, D, E)                             \
  MESHWORK_INLINE void setProduct16(float (&d)[count], U64 a, U64 b) {         \
    asm volatile(MESHWORK_WGMMA(n, count, "0", A, B, "1, 1, 0, 0")             \
                 : MESHWORK_LIST##count(MESHWORK_SET, d, 0)                    \
                 : "l"(a), "l"(b));                                            \
  }                                                                            \
  MESHWORK_INLINE void addProduct16(float (&d)[count], U64 a, U64 b) {         \
    asm volatile(MESHWORK_WGMMA(n, count, "1", A, B, "1, 1, 0, 0")             \
                 : MESHWORK_LIST##count(MESHWORK_ADD, d, 0)                    \
                 : "l"(a), "l"(b));                                            \
  }                                                                            \
  MESHWORK_INLINE void addProduct16(float (&d)[count], const U32(&a)[4],       \
                                    U64 b) {                                   \
    asm volatile(MESHWORK_WGMMA(n, count, "1", "{" A "," B "," C "," D "}", E, \
                                "1, 1, 1")                                     \
                 : MESHWORK_LIST##count(MESHWORK_ADD, d, 0)                    \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));        \
  }
MESHWORK_PRODUCTS(64, 32, "%32", "%33", "%34", "%35", "%36")
MESHWORK_PRODUCTS(128, 64, "%64", "%65", "%66", "%67", "%68")

/// d = left right^T: rows [0, 64) from `left` of a tile of leftRows, and as
/// many rows of `right` as d has columns, of a tile of rightRows.
template <int columns, int leftRows, int rightRows, int R>
MESHWORK_INLINE void multiply(float (&d)[R], U32 left, U32 right) {
  U64 a = describeRows(left), b = describeRows(right);
#pragma unroll
  for (int k = 0; k < columns / 16; ++k) {
    int box = k / 4, inBox = k % 4 * 32;
    U64 nextA = a + ((box * columnBytes(leftRows) + inBox) >> 4),
        nextB = b + ((box * columnBytes(rightRows) + inBox) >> 4);
    if (k == 0)
      setProduct16(d, nextA, nextB);
    else
      addProduct16(d, nextA, nextB);
  }
}
/// d += left right: `left` in registers, 16 columns in each four; so many rows
/// of `right`, of a tile of rightRows.
template <int rightRows, int R, int K>
MESHWORK_INLINE void addProduct(float (&d)[R], const U32 (&left)[K][4],
                                U32 right) {
  U64 b = describeColumns<rightRows>(right);
#pragma unroll
  for (int k = 0; k < K; ++k)
    addProduct16(d, left[k], b + k * (16 * rowBytes >> 4));
}

// --- Registers of a product: a thread of the warpgroup has two rows, `row` and
// row + 8, and of each columns 8 j + `column` and the next: number 4 j + 2 r +
// e.

struct Lane {
  int row, column;
  MESHWORK_INLINE Lane() {
    int inGroup = fresh(thread()) % warpgroupThreads, lane = inGroup % 32;
    row = inGroup / 32 * 16 + lane / 4;
    column = lane % 4 * 2;
  }
};

MESHWORK_INLINE U32 packBf16(float low, float high) {
  U32 packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
/// As the left operand of the next product.
template <int R>
MESHWORK_INLINE void toOperand(U32 (&operand)[R / 8][4], const float (&d)[R]) {
#pragma unroll
  for (int k = 0; k < R / 8; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      operand[k][i] = packBf16(d[8 * k + 2 * i], d[8 * k + 2 * i + 1]);
}

/// 64 rows, each times its factor, as a tile of 64 rows.
template <int R>
MESHWORK_INLINE void writeTile(U32 tile, const float (&d)[R],
                               const float (&factors)[2]) {
  Lane lane;
#pragma unroll
  for (int j = 0; j < R / 4; ++j)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      int row = lane.row + 8 * r;
      U32 address = tile + j / 8 * columnBytes(warpgroupRows) + row * rowBytes +
                    ((j % 8 ^ row % 8) * 16) + lane.column * 2;
      U32 values = packBf16(d[4 * j + 2 * r] * factors[r],
                            d[4 * j + 2 * r + 1] * factors[r]);
      asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(values)
                   : "memory");
    }
}

} // namespace meshwork::runtime::cuda
