// Instructions in which lanes of a warp work together.
#include "test/Emulator/Snippet.h"

namespace meshwork::ptx {
namespace {

/// All 1024 results of 32 warps against expected(value of each lane, lane).
template <class F> void checkWarps(const std::string &body, F expected) {
  SCOPED_TRACE(body);
  Snippet<uint32_t, uint32_t> snippet(body);
  std::vector<uint32_t> values = testValues<uint32_t>(1024, 1, 3);
  std::vector<uint32_t> found = snippet.run(values);
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(found[i], expected(&values[i / 32 * 32], int(i % 32))) << i;
}
using Values = const uint32_t *;

TEST(Warp, Shuffles) {
  checkWarps("shfl.sync.bfly.b32 %d, %a, 5, 31, -1;",
             [](Values v, int l) { return v[l ^ 5]; });
  checkWarps("shfl.sync.down.b32 %d, %a, 3, 31, -1;",
             [](Values v, int l) { return l + 3 < 32 ? v[l + 3] : v[l]; });
  checkWarps("shfl.sync.up.b32 %d, %a, 4, 0, -1;",
             [](Values v, int l) { return l >= 4 ? v[l - 4] : v[l]; });
  checkWarps("shfl.sync.idx.b32 %d, %a, 9, 31, -1;",
             [](Values v, int l) { return v[9]; });
  // Segments of 8 lanes: the mask 0x18 and the last lane 7.
  checkWarps("shfl.sync.idx.b32 %d, %a, 2, 0x181f, -1;",
             [](Values v, int l) { return v[l / 8 * 8 + 2]; });
  checkWarps("shfl.sync.down.b32 %d|%p, %a, 1, 0x1807, -1;\n"
             "selp.b32 %d, %d, 12345, %p;",
             [](Values v, int l) { return l % 8 < 7 ? v[l + 1] : 12345; });
}
TEST(Warp, LanesThatComeLaterAreWaitedFor) {
  // Two branches lead to the shuffle; half of the warp comes by the longer.
  checkWarps("mov.u32 %r1, %laneid; setp.lt.u32 %p, %r1, 16; @%p bra L1;\n"
             "add.u32 %a, %a, 1; bra L2; L1: add.u32 %a, %a, 1; "
             "add.u32 %a, %a, 0; L2:\n"
             "shfl.sync.bfly.b32 %d, %a, 16, 31, -1;",
             [](Values v, int l) { return v[l ^ 16] + 1; });
  // Halves that exchange for themselves.
  checkWarps("mov.u32 %r1, %laneid; setp.lt.u32 %p, %r1, 16; @%p bra L1;\n"
             "shfl.sync.bfly.b32 %d, %a, 1, 31, 0xffff0000; bra L2;\n"
             "L1: shfl.sync.bfly.b32 %d, %a, 2, 31, 0xffff; L2:",
             [](Values v, int l) { return v[l ^ (l < 16 ? 2 : 1)]; });
}
TEST(Warp, Votes) {
  checkWarps("setp.gt.u32 %p, %a, 100; vote.sync.ballot.b32 %d, %p, -1;",
             [](Values v, int) {
               uint32_t bits = 0;
               for (int l = 0; l < 32; ++l)
                 bits |= uint32_t(v[l] > 100) << l;
               return bits;
             });
  auto voted = [](const char *mode, auto expected) {
    checkWarps(absl::StrCat("setp.gt.u32 %p, %a, 7; vote.sync.", mode,
                            ".pred %q, !%p, -1; selp.b32 %d, 1, 0, %q;"),
               [=](Values v, int) -> uint32_t {
                 int count = 0;
                 for (int l = 0; l < 32; ++l)
                   count += v[l] <= 7;
                 return expected(count);
               });
  };
  voted("any", [](int n) { return n > 0; });
  voted("all", [](int n) { return n == 32; });
  voted("uni", [](int n) { return n == 32 || n == 0; });
}
TEST(Warp, MatchesAndReductions) {
  checkWarps("and.b32 %a, %a, 3; match.any.sync.b32 %d, %a, -1;",
             [](Values v, int lane) {
               uint32_t bits = 0;
               for (int l = 0; l < 32; ++l)
                 bits |= uint32_t((v[l] & 3) == (v[lane] & 3)) << l;
               return bits;
             });
  auto reduced = [](const char *op, uint32_t begin, auto join) {
    checkWarps(absl::StrCat("redux.sync.", op, " %d, %a, -1;"),
               [=](Values v, int) {
                 uint32_t result = begin;
                 for (int l = 0; l < 32; ++l)
                   result = join(result, v[l]);
                 return result;
               });
  };
  using U = uint32_t;
  reduced("add.u32", 0, [](U a, U b) { return a + b; });
  reduced("min.u32", ~0u, [](U a, U b) { return std::min(a, b); });
  reduced("max.s32", U(INT32_MIN),
          [](U a, U b) { return U(std::max(int32_t(a), int32_t(b))); });
  reduced("or.b32", 0, [](U a, U b) { return a | b; });
}
TEST(Warp, ALaneThatDoesNotComeIsAnError) {
  auto status = [](const std::string &body) {
    Kernels kernels = Kernels::fromText(kernelText<uint32_t>(body));
    Buffer<uint32_t> out(32);
    return kernels.launch("k", {.grid = {}, .block = {32}}, out);
  };
  EXPECT_TRUE(
      failsWith(status("mov.u32 %d, 0; setp.eq.u32 %p, %thread, 5; @%p ret;\n"
                       "shfl.sync.bfly.b32 %d, %thread, 1, 31, -1;"),
                "lanes 0x00000020 have ended and never come here"));
  EXPECT_TRUE(failsWith(
      status("mov.u32 %d, 0; shfl.sync.bfly.b32 %d, %thread, 1, 31, 0xf;"),
      "the lane is not in its mask 0x0000000f"));
  EXPECT_TRUE(
      failsWith(status("mov.u32 %d, 0; setp.lt.u32 %p, %thread, 16;\n"
                       "@%p shfl.sync.bfly.b32 %d, %thread, 16, 31, 0xffff;"),
                "reads from lane 16, which does not take part"));
  EXPECT_TRUE(failsWith(
      status("mov.u32 %d, 0; setp.lt.u32 %p, %thread, 16; @%p bra A;\n"
             "bar.warp.sync -1; bra END; A: bar.warp.sync -1; END:"),
      "wait for each other at different places"));
}

/// C = A * B + C of one warp through the instructions; `load` gives fragments.
struct Matrices {
  std::vector<float> a, b, c; // 16 x k, k x 8, 16 x 8
};
Matrices randomMatrices(int k, unsigned keep) {
  std::mt19937 random(k + keep);
  auto value = [&] {
    float x = float(int(random() % 4001) - 2000) / 512;
    uint32_t bits = std::bit_cast<uint32_t>(x);
    return std::bit_cast<float>(bits & keep); // exact in the input's format
  };
  Matrices m;
  for (int i = 0; i < 16 * k; ++i)
    m.a.push_back(value());
  for (int i = 0; i < 8 * k; ++i)
    m.b.push_back(value());
  for (int i = 0; i < 128; ++i)
    m.c.push_back(value());
  return m;
}
std::vector<float> product(const Matrices &m, int k) {
  std::vector<float> d = m.c;
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column)
      for (int i = 0; i < k; ++i)
        d[row * 8 + column] = std::fma(m.a[row * k + i], m.b[i * 8 + column],
                                       d[row * 8 + column]);
  return d;
}
/// The warp reads its fragments from global memory: A and B 16 bit, row by row.
const char *const bf16Product = R"(
.version 8.6 .target sm_80 .address_size 64
.visible .entry k(.param .u64 d, .param .u64 a, .param .u64 b)
{
  .reg .b32 %r<30>; .reg .b64 %rd<9>; .shared .align 16 .b8 sa[512];
  .shared .align 16 .b8 sb[256];
  ld.param.b64 %rd1, [d]; ld.param.b64 %rd2, [a]; ld.param.b64 %rd3, [b];
  mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 4; cvt.u64.u32 %rd4, %r2;
  // All of A and B to shared memory, 16 bytes a lane.
  add.s64 %rd5, %rd2, %rd4; ld.global.v4.b32 {%r3, %r4, %r5, %r6}, [%rd5];
  mov.u32 %r7, sa; add.u32 %r8, %r7, %r2; st.shared.v4.b32 [%r8], {%r3, %r4, %r5, %r6};
  and.b32 %r9, %r1, 15; shl.b32 %r9, %r9, 4; cvt.u64.u32 %rd6, %r9;
  add.s64 %rd6, %rd3, %rd6; ld.global.v4.b32 {%r3, %r4, %r5, %r6}, [%rd6];
  mov.u32 %r10, sb; add.u32 %r11, %r10, %r9; st.shared.v4.b32 [%r11], {%r3, %r4, %r5, %r6};
  bar.warp.sync -1;
  // Row lane%16 of A, columns 0 or 8: matrices in the order of the fragments.
  and.b32 %r12, %r1, 15; shl.b32 %r12, %r12, 5; shr.u32 %r13, %r1, 4; shl.b32 %r13, %r13, 4;
  add.u32 %r14, %r7, %r12; add.u32 %r14, %r14, %r13;
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r15, %r16, %r17, %r18}, [%r14];
  ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {%r19, %r20}, [%r11];
  // C and D: rows lane/4 and 8 more, columns 2*(lane%4) and 1 more.
  shr.u32 %r21, %r1, 2; and.b32 %r22, %r1, 3; shl.b32 %r21, %r21, 5;
  shl.b32 %r22, %r22, 3; add.u32 %r21, %r21, %r22; cvt.u64.u32 %rd7, %r21;
  add.s64 %rd7, %rd1, %rd7;
  ld.global.v2.f32 {%r23, %r24}, [%rd7]; ld.global.v2.f32 {%r25, %r26}, [%rd7+256];
  mma.sync.aligned.m16n8k16.row.col.f32.TYPE.TYPE.f32
    {%r23, %r24, %r25, %r26}, {%r15, %r16, %r17, %r18}, {%r19, %r20},
    {%r23, %r24, %r25, %r26};
  st.global.v2.f32 [%rd7], {%r23, %r24}; st.global.v2.f32 [%rd7+256], {%r25, %r26};
  ret;
}
)";
template <class Encode>
void check16BitProduct(const std::string &type, unsigned keep, Encode encode) {
  std::string text = bf16Product;
  for (size_t at; (at = text.find("TYPE")) != text.npos;)
    text.replace(at, 4, type);
  Kernels kernels = Kernels::fromText(text);
  Matrices m = randomMatrices(16, keep);
  auto encoded = [&](const std::vector<float> &values) {
    std::vector<uint16_t> result;
    for (float x : values)
      result.push_back(encode(x));
    return result;
  };
  Buffer<uint16_t> a(encoded(m.a)), b(encoded(m.b));
  Buffer<float> d(m.c);
  absl::Status status =
      kernels.launch("k", {.grid = {}, .block = {32}}, d, a, b);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(std::vector(d.begin(), d.end()), product(m, 16));
}
TEST(Matrix, Bf16ThroughLdmatrix) {
  check16BitProduct("bf16", 0xffff0000, [](float x) {
    return uint16_t(std::bit_cast<uint32_t>(x) >> 16);
  });
}
TEST(Matrix, F16ThroughLdmatrix) {
  check16BitProduct("f16", 0xffffe000, [](float x) {
    return std::bit_cast<uint16_t>(_Float16(x));
  });
}
TEST(Matrix, Tf32) {
  // One row of A a register: a0 (row g, k t), a1 (g + 8, t), a2, a3 (k t + 4).
  Kernels kernels = Kernels::fromText(R"(
.version 8.6 .target sm_80 .address_size 64
.visible .entry k(.param .u64 d, .param .u64 a, .param .u64 b)
{
  .reg .b32 %r<30>; .reg .b64 %rd<9>;
  ld.param.b64 %rd1, [d]; ld.param.b64 %rd2, [a]; ld.param.b64 %rd3, [b];
  mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 2; and.b32 %r3, %r1, 3;
  mad.lo.u32 %r4, %r2, 8, %r3; mad.wide.u32 %rd4, %r4, 4, %rd2;
  ld.global.b32 %r5, [%rd4]; ld.global.b32 %r6, [%rd4+256];
  ld.global.b32 %r7, [%rd4+16]; ld.global.b32 %r8, [%rd4+272];
  mad.lo.u32 %r9, %r3, 8, %r2; mad.wide.u32 %rd5, %r9, 4, %rd3;
  ld.global.b32 %r10, [%rd5]; ld.global.b32 %r11, [%rd5+128];
  shl.b32 %r12, %r3, 1; mad.lo.u32 %r12, %r2, 8, %r12; mad.wide.u32 %rd6, %r12, 4, %rd1;
  ld.global.v2.b32 {%r13, %r14}, [%rd6]; ld.global.v2.b32 {%r15, %r16}, [%rd6+256];
  mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r13, %r14, %r15, %r16},
    {%r5, %r6, %r7, %r8}, {%r10, %r11}, {%r13, %r14, %r15, %r16};
  st.global.v2.b32 [%rd6], {%r13, %r14}; st.global.v2.b32 [%rd6+256], {%r15, %r16};
  ret;
}
)");
  Matrices m = randomMatrices(8, 0xffffe000);
  Buffer<float> a(m.a), b(m.b), d(m.c);
  absl::Status status =
      kernels.launch("k", {.grid = {}, .block = {32}}, d, a, b);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(std::vector(d.begin(), d.end()), product(m, 8));
}
TEST(Matrix, StoredAndTransposed) {
  Kernels kernels = Kernels::fromText(R"(
.version 8.6 .target sm_90 .address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<9>; .reg .b64 %rd<4>; .shared .align 16 .b8 tile[128];
  ld.param.b64 %rd1, [out]; mov.u32 %r1, %tid.x;
  // Elements 2 * lane and 2 * lane + 1 of the matrix, row by row.
  shl.b32 %r2, %r1, 1; add.u32 %r3, %r2, 1; shl.b32 %r3, %r3, 16; or.b32 %r2, %r2, %r3;
  movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r2;
  and.b32 %r5, %r1, 7; shl.b32 %r5, %r5, 4; mov.u32 %r6, tile; add.u32 %r5, %r5, %r6;
  stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r4};
  bar.warp.sync -1;
  shl.b32 %r7, %r1, 2; add.u32 %r6, %r6, %r7; ld.shared.b32 %r8, [%r6];
  cvt.u64.u32 %rd2, %r7; add.s64 %rd1, %rd1, %rd2; st.global.b32 [%rd1], %r8; ret;
}
)");
  Buffer<uint16_t> out(64);
  absl::Status status = kernels.launch("k", {.grid = {}, .block = {32}}, out);
  ASSERT_TRUE(status.ok()) << status;
  for (int row = 0; row < 8; ++row)
    for (int column = 0; column < 8; ++column)
      EXPECT_EQ(out[row * 8 + column], column * 8 + row);
}

} // namespace
} // namespace meshwork::ptx
