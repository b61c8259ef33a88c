#include "test/Emulator/Snippet.h"

namespace meshwork::ptx {
namespace {

TEST(Memory, VectorsOfEveryWidth) {
  Snippet<uint64_t, uint64_t>(
      "ld.global.nc.L1::no_allocate.v2.b32 {%r1, %r2}, [%ata];\n"
      "mov.b64 %d, {%r2, %r1};")
      .check([](uint64_t a) { return a << 32 | a >> 32; });
  Snippet<uint64_t, uint64_t>("ld.global.v4.u16 {%h1, %h2, %h3, %h4}, [%ata];\n"
                              "mov.b64 %d, {%h4, %h3, %h2, %h1};")
      .check([](uint64_t a) {
        return a << 48 | (a >> 16 & 0xffff) << 32 | (a >> 32 & 0xffff) << 16 |
               a >> 48;
      });
  // A narrow value extends into its register.
  Snippet<int32_t, int32_t>("ld.global.s8 %d, [%ata+1];").check([](int32_t a) {
    return int8_t(a >> 8);
  });
  Snippet<uint32_t, uint32_t>("ld.global.u8 %d, [%ata+3];")
      .check([](uint32_t a) { return a >> 24; });
}

TEST(Memory, EightValuesAtOnce) {
  Kernels kernels = Kernels::fromText(R"(
.version 8.8 .target sm_100 .address_size 64
.visible .entry k(.param .u64 to, .param .u64 from)
{
  .reg .b32 %r<10>; .reg .b64 %rd<3>;
  ld.param.b64 %rd1, [to]; ld.param.b64 %rd2, [from];
  ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd2];
  st.global.v8.b32 [%rd1], {%r8, %r7, %r6, %r5, %r4, %r3, %r2, %r1};
  ret;
}
)");
  Buffer<uint32_t> to(8), from(std::vector<uint32_t>{1, 2, 3, 4, 5, 6, 7, 8});
  ASSERT_TRUE(kernels.launch("k", {}, to, from).ok());
  EXPECT_EQ(std::vector(to.begin(), to.end()),
            (std::vector<uint32_t>{8, 7, 6, 5, 4, 3, 2, 1}));
}

const char *const spaces = R"(
.version 8.6 .target sm_80 .address_size 64
.global .align 4 .b8 table[8] = {1, 0, 0, 0, 2, 0, 0, 0};
.const .align 8 .u64 pointer = table+4;
.visible .entry counts(.param .u64 out)
{
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.b64 %rd1, [out];
  ld.global.b32 %r1, [table+4]; add.u32 %r1, %r1, 1; st.global.b32 [table+4], %r1;
  ld.const.b64 %rd2, [pointer]; ld.global.b32 %r2, [%rd2]; st.global.b32 [%rd1], %r2;
  ret;
}
.visible .entry generic(.param .u64 out, .param .align 8 .b8 pair[16])
{
  .local .align 8 .b8 stack[64]; .shared .align 4 .b8 tile[128];
  .reg .b32 %r<9>; .reg .b64 %rd<12>; .reg .pred %p<2>;
  ld.param.b64 %rd1, [out];
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;
  mov.b64 %rd3, stack; cvta.local.u64 %rd4, %rd3;
  mov.b64 %rd5, tile; add.s64 %rd5, %rd5, %rd2; cvta.shared.u64 %rd5, %rd5;
  mov.b64 %rd6, pair; cvta.param.u64 %rd6, %rd6;
  add.u32 %r2, %r1, 1000; st.b32 [%rd4+8], %r2; ld.local.b32 %r3, [stack+8];
  add.u32 %r4, %r1, 2000; st.b32 [%rd5], %r4;
  ld.b32 %r5, [%rd6+8];
  setp.lt.u32 %p1, %r1, 16; selp.b64 %rd7, %rd4, %rd5, %p1;
  @%p1 add.s64 %rd7, %rd7, 8;
  ld.b32 %r6, [%rd7];
  add.u32 %r6, %r6, %r5; add.s64 %rd8, %rd1, %rd2; st.b32 [%rd8], %r6;
  ret;
}
)";
TEST(Memory, VariablesOfTheModuleKeepTheirValues) {
  Kernels kernels = Kernels::fromText(spaces);
  Buffer<uint32_t> out(1);
  for (uint32_t launch = 0; launch < 3; ++launch) {
    absl::Status status = kernels.launch("counts", {}, out);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(out[0], 3 + launch);
  }
}
TEST(Memory, GenericAddressesFindTheirSpace) {
  Kernels kernels = Kernels::fromText(spaces);
  Buffer<uint32_t> out(32);
  struct {
    uint64_t a = 1, b = 70000;
  } pair;
  absl::Status status =
      kernels.launch("generic", {.grid = {}, .block = {32}}, out, pair);
  ASSERT_TRUE(status.ok()) << status;
  for (uint32_t t = 0; t < 32; ++t)
    EXPECT_EQ(out[t], 70000 + t + (t < 16 ? 1000 : 2000));
}

absl::Status store(int64_t offset, const char *instruction,
                   uint32_t sharedBytes = 0) {
  Kernels kernels = Kernels::fromText(absl::StrCat(R"(
.version 8.6 .target sm_80 .address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<9>; .reg .b64 %rd<9>;
  ld.param.b64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.b64 %rd3, dynamic;
  mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2; add.s64 %rd3, %rd3, %rd2;
  )",
                                                   instruction, "\nret;\n}\n"));
  Buffer<uint32_t> out(64);
  uint64_t address = out.address() + uint64_t(offset);
  return kernels.launch(
      "k", {.grid = {2}, .block = {64}, .sharedBytes = sharedBytes}, address);
}
TEST(Memory, AddressesAreChecked) {
  EXPECT_TRUE(store(0, "st.global.b32 [%rd1], %r1;").ok());
  absl::Status above = store(4, "st.global.b32 [%rd1], %r1;");
  EXPECT_EQ(above.code(), absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(failsWith(above, "illegal write of 4 bytes at 0x"));
  EXPECT_TRUE(failsWith(above, "one of 256 bytes begins 256 bytes before it"));
  EXPECT_TRUE(failsWith(above, "block (0,0,0), thread (63,0,0)"));
  EXPECT_TRUE(failsWith(above, "kernel k: "));
  EXPECT_TRUE(failsWith(above, "line 9 'st.global.b32 [%rd1], %r1'"));
  EXPECT_TRUE(failsWith(store(-4, "ld.global.b32 %r2, [%rd1];"),
                        "illegal read of 4 bytes"));
  EXPECT_TRUE(failsWith(store(0, "ld.global.v2.b32 {%r2, %r3}, [%rd1];"),
                        "not aligned to the 8 bytes"));
  EXPECT_TRUE(failsWith(store(0, "atom.global.add.u32 %r2, [%rd1+256], 1;"),
                        "illegal atomic of 4 bytes"));
  EXPECT_TRUE(failsWith(store(0, "ld.global.b32 %r2, [0];"), "at 0x0"));
}
TEST(Memory, SharedAddressesAreChecked) {
  EXPECT_TRUE(store(0, "st.shared.b32 [%rd3], %r1;", 256).ok());
  EXPECT_TRUE(failsWith(store(0, "st.shared.b32 [%rd3], %r1;", 252),
                        "illegal write of 4 bytes at shared address"));
  EXPECT_TRUE(failsWith(store(0, "ld.shared.b32 %r1, [%rd2];", 256),
                        "shared address 0x0"));
}
TEST(Memory, WhatNobodyWroteIsNaN) {
  Kernels kernels = Kernels::fromText(R"(
.version 8.6 .target sm_80 .address_size 64
.visible .entry k(.param .u64 out)
{
  .shared .align 4 .b8 tile[128]; .reg .b32 %r<3>; .reg .b64 %rd<2>;
  ld.param.b64 %rd1, [out];
  ld.shared.b32 %r1, [tile+4]; st.global.b32 [%rd1], %r1;
  st.global.b32 [%rd1+4], %r2; st.shared.b32 [tile+4], 0; ret;
}
)");
  Buffer<float> out(2);
  ASSERT_TRUE(kernels.launch("k", {.grid = {3}}, out).ok());
  EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]));
}

/// Each thread of two blocks does `instruction` on out[0]; %d goes to out[1].
uint32_t atomicResult(const char *instruction, uint32_t begin,
                      unsigned numThreads = 1) {
  Kernels kernels = Kernels::fromText(absl::StrCat(R"(
.version 8.6 .target sm_90 .address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<9>, %d; .reg .b64 %rd<9>;
  ld.param.b64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r3, %ctaid.x;
  mad.lo.u32 %r1, %r3, 64, %r1; cvt.rn.f32.u32 %r2, %r1;
  )",
                                                   instruction, "\nret;\n}\n"));
  Buffer<uint32_t> out(std::vector<uint32_t>{begin, 0, 0, 0});
  absl::Status status = kernels.launch(
      "k", {.grid = {2}, .block = {64}, .numThreads = numThreads}, out);
  EXPECT_TRUE(status.ok()) << status;
  return out[0];
}
TEST(Atomics, Operations) {
  EXPECT_EQ(atomicResult("red.global.add.u32 [%rd1], %r1;", 5), 5 + 8128u);
  EXPECT_EQ(atomicResult("red.global.add.u32 [%rd1], %r1;", 5, 4), 5 + 8128u);
  EXPECT_EQ(atomicResult("atom.add.f32 %d, [%rd1], %r2;", 0),
            std::bit_cast<uint32_t>(8128.f));
  EXPECT_EQ(atomicResult("red.relaxed.gpu.global.add.f32 [%rd1], %r2;", 0),
            std::bit_cast<uint32_t>(8128.f));
  EXPECT_EQ(atomicResult("red.max.s32 [%rd1], %r1;", 17), 127u);
  EXPECT_EQ(atomicResult("red.min.u32 [%rd1], %r1;", 17), 0u);
  EXPECT_EQ(atomicResult("red.and.b32 [%rd1], 0xf0;", 0x3c), 0x30u);
  EXPECT_EQ(atomicResult("red.xor.b32 [%rd1], %r1;", 1), 1u);
  EXPECT_EQ(atomicResult("atom.inc.u32 %d, [%rd1], 4;", 0), 128 % 5u);
  EXPECT_EQ(atomicResult("atom.dec.u32 %d, [%rd1], 4;", 3), 0u);
  EXPECT_EQ(atomicResult("atom.exch.b32 %d, [%rd1], 9;", 3), 9u);
  EXPECT_EQ(atomicResult("atom.cas.b32 %d, [%rd1], %r1, 500;", 77), 500u);
  EXPECT_EQ(atomicResult("red.global.v2.f32.add [%rd1], {%r2, %r2};", 0),
            std::bit_cast<uint32_t>(8128.f));
  EXPECT_EQ(atomicResult("red.add.noftz.bf16x2 [%rd1], 0x3f803f80;", 0),
            0x43004300u); // 128 and 128
}
TEST(Atomics, OnSharedMemoryAreNoRaces) {
  const char *add = "red.shared.add.u32 [tile], 1; bar.sync 0;\n"
                    "ld.shared.b32 %r4, [tile]; st.global.b32 [%rd1], %r4;";
  std::string begin = ".shared .align 4 .b8 tile[4]; .reg .pred %p;\n"
                      "mov.u32 %r5, %tid.x; setp.eq.u32 %p, %r5, 0;\n"
                      "@%p st.shared.b32 [tile], 0; bar.sync 0;\n";
  EXPECT_EQ(atomicResult((begin + add).c_str(), 0), 64u);
}

std::string copyKernel(const char *wait) {
  return absl::StrCat(R"(
.version 8.6 .target sm_80 .address_size 64
.extern .shared .align 16 .b8 tile[];
.visible .entry k(.param .u64 out, .param .u64 from, .param .u32 bytes)
{
  .reg .b32 %r<9>; .reg .b64 %rd<9>;
  ld.param.b64 %rd1, [out]; ld.param.b64 %rd2, [from]; ld.param.b32 %r8, [bytes];
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 16; add.s64 %rd4, %rd2, %rd3;
  mov.u32 %r2, tile; shl.b32 %r3, %r1, 4; add.u32 %r2, %r2, %r3;
  st.shared.b32 [%r2+4], 7;
  cp.async.cg.shared.global.L2::128B [%r2], [%rd4], 16, %r8;
  cp.async.commit_group;
  cp.async.ca.shared.global [%r2+512], [%rd4], 4;
  cp.async.commit_group;
  )",
                      wait, R"(
  ld.shared.b32 %r4, [%r2+4]; ld.shared.b32 %r5, [%r2+512];
  mul.wide.u32 %rd5, %r1, 8; add.s64 %rd1, %rd1, %rd5;
  st.global.v2.b32 [%rd1], {%r4, %r5}; ret;
}
)");
}
std::vector<uint32_t> copied(const char *wait, uint32_t bytes = 16) {
  Kernels kernels = Kernels::fromText(copyKernel(wait));
  std::vector<uint32_t> values(128);
  for (uint32_t i = 0; i < 128; ++i)
    values[i] = 100 + i;
  Buffer<uint32_t> out(64), from(values);
  absl::Status status = kernels.launch(
      "k", {.grid = {}, .block = {32}, .sharedBytes = 1024}, out, from, bytes);
  EXPECT_TRUE(status.ok()) << status;
  return {out.begin(), out.end()};
}
TEST(AsyncCopies, ArriveAtTheWait) {
  std::vector<uint32_t> all = copied("cp.async.wait_all;");
  EXPECT_EQ(all[2], 105u);
  EXPECT_EQ(all[3], 104u);
  EXPECT_EQ(copied("cp.async.wait_group 0;"), all);
  std::vector<uint32_t> first = copied("cp.async.wait_group 1;");
  EXPECT_EQ(first[2], 105u);
  EXPECT_EQ(first[3], ~0u); // the second group is still under way
  std::vector<uint32_t> none = copied("");
  EXPECT_EQ(none[2], 7u);
  EXPECT_EQ(none[3], ~0u);
}
TEST(AsyncCopies, WhatIsNotReadIsZero) {
  std::vector<uint32_t> found = copied("cp.async.wait_all;", 0);
  EXPECT_EQ(found[2], 0u);
  EXPECT_EQ(copied("cp.async.wait_all;", 8)[2], 105u);
  EXPECT_EQ(copied("cp.async.wait_all;", 4)[2], 0u);
}

} // namespace
} // namespace meshwork::ptx
