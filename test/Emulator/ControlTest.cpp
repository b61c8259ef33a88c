// Branches, calls, barriers: what lanes and warps do when they part and meet.
#include "test/Emulator/Snippet.h"

namespace meshwork::ptx {
namespace {

std::string kernel(const std::string &before, const std::string &body) {
  return absl::StrCat(".version 8.6\n.target sm_80\n.address_size 64\n", before,
                      ".visible .entry k(.param .u64 out)\n{\n"
                      ".reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %rd<10>;\n"
                      "ld.param.b64 %rd1, [out]; mov.u32 %r1, %tid.x;\n"
                      "mad.wide.u32 %rd2, %r1, 4, %rd1; mov.u32 %r9, 0;\n",
                      body, "\n}\n");
}
struct Outcome {
  std::vector<uint32_t> values;
  absl::Status status;
};
Outcome run(const std::string &text, uint32_t threads = 64) {
  Kernels kernels = Kernels::fromText(text);
  Buffer<uint32_t> out(threads);
  absl::Status status =
      kernels.launch("k", {.grid = {}, .block = {threads}}, out);
  return {{out.begin(), out.end()}, status};
}
constexpr const char *store = "st.global.b32 [%rd2], %r9; ret;";

TEST(Control, LanesPartAndMeet) {
  // After the conditional all 32 lanes are together again.
  Outcome found = run(kernel("", absl::StrCat(R"(
    and.b32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 0; @%p1 bra ZERO;
    setp.eq.u32 %p2, %r2, 1; @%p2 bra ONE;
    mov.u32 %r9, 20; bra.uni END;
    ONE: mov.u32 %r9, 10; bra.uni END;
    ZERO: mov.u32 %r9, 5;
    END: activemask.b32 %r3; popc.b32 %r3, %r3; add.u32 %r9, %r9, %r3;)",
                                              store)));
  ASSERT_TRUE(found.status.ok()) << found.status;
  for (uint32_t t = 0; t < 64; ++t)
    EXPECT_EQ(found.values[t], 32 + (t % 4 == 0 ? 5 : t % 4 == 1 ? 10 : 20));
}

TEST(Control, EachLaneLoopsAsOftenAsItNeeds) {
  Outcome found = run(kernel("", absl::StrCat(R"(
    mov.u32 %r2, 0;
    LOOP: setp.ge.u32 %p1, %r2, %r1; @%p1 bra DONE;
    add.u32 %r9, %r9, %r2; add.u32 %r2, %r2, 1; bra.uni LOOP;
    DONE: activemask.b32 %r3; popc.b32 %r3, %r3;
    mad.lo.u32 %r9, %r3, 10000, %r9;)",
                                              store)));
  ASSERT_TRUE(found.status.ok()) << found.status;
  for (uint32_t t = 0; t < 64; ++t)
    EXPECT_EQ(found.values[t], 320000 + t * (t - 1) / 2 * (t > 0));
}

TEST(Control, IndexedBranch) {
  Outcome found = run(kernel("", absl::StrCat(R"(
    and.b32 %r2, %r1, 3;
    TABLE: .branchtargets A, B, C, B;
    brx.idx %r2, TABLE;
    A: mov.u32 %r9, 1; bra END;
    B: mov.u32 %r9, 2; bra END;
    C: mov.u32 %r9, 3;
    END: )",
                                              store)));
  ASSERT_TRUE(found.status.ok()) << found.status;
  const uint32_t expected[] = {1, 2, 3, 2};
  for (uint32_t t = 0; t < 64; ++t)
    EXPECT_EQ(found.values[t], expected[t % 4]);
}

TEST(Control, CallsWithStructsAndEarlyReturns) {
  std::string function = R"(
.func (.param .b32 result) f(.param .b32 n, .param .align 4 .b8 pair[8])
{
  .reg .b32 %r<5>; .reg .pred %p<2>;
  ld.param.b32 %r1, [n]; ld.param.b32 %r2, [pair+4];
  setp.gt.u32 %p1, %r1, 40; @%p1 bra BIG;
  add.u32 %r3, %r1, %r2; st.param.b32 [result], %r3; ret;
  BIG: ld.param.b32 %r4, [pair]; st.param.b32 [result], %r4; ret;
}
)";
  Outcome found = run(kernel(function, absl::StrCat(R"(
    { .param .b32 n; .param .align 4 .b8 pair[8]; .param .b32 result;
      st.param.b32 [n], %r1; st.param.b32 [pair], 7; st.param.b32 [pair+4], 100;
      call.uni (result), f, (n, pair); ld.param.b32 %r9, [result]; }
    { .param .b32 n; .param .align 8 .b8 pair[8]; .param .b32 result;
      st.param.b32 [n], %r9; st.param.v2.b32 [pair], {1, 2};
      call (result), f, (n, pair); ld.param.b32 %r2, [result]; }
    mad.lo.u32 %r9, %r2, 1000, %r9;)",
                                                    store)));
  ASSERT_TRUE(found.status.ok()) << found.status;
  for (uint32_t t = 0; t < 64; ++t) {
    uint32_t first = t > 40 ? 7 : t + 100;
    EXPECT_EQ(found.values[t], (first > 40 ? 1 : first + 2) * 1000 + first);
  }
}

TEST(Control, NamesOfInnerScopesAreTheirOwn) {
  Outcome found = run(kernel("", absl::StrCat(R"(
    { .reg .b32 t; .reg .pred p; mov.b32 t, 5; setp.lt.u32 p, %r1, 3;
      @p bra SKIP; add.u32 %r9, %r9, t; SKIP: add.u32 %r9, %r9, 1; }
    { .reg .b32 t; mov.b32 t, 50; bra SKIP; add.u32 %r9, %r9, 999;
      SKIP: add.u32 %r9, %r9, t; })",
                                              store)));
  ASSERT_TRUE(found.status.ok()) << found.status;
  for (uint32_t t = 0; t < 64; ++t)
    EXPECT_EQ(found.values[t], t < 3 ? 51u : 56u);
}

TEST(Control, SpecialRegisters) {
  Kernels kernels = Kernels::fromText(R"(
.version 8.6 .target sm_80 .address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<20>; .reg .b64 %rd<3>;
  ld.param.b64 %rd1, [out];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;
  mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y;
  mov.u32 %r6, %ntid.x; mov.u32 %r7, %ntid.y; mov.u32 %r8, %nctaid.x;
  mov.u32 %r9, %laneid; mov.u32 %r10, %warpid; mov.u32 %r16, %ntid.z;
  mad.lo.u32 %r11, %r3, %r7, %r2; mad.lo.u32 %r11, %r11, %r6, %r1;
  mad.lo.u32 %r12, %r5, %r8, %r4; mul.lo.u32 %r13, %r6, %r7;
  mul.lo.u32 %r13, %r13, %r16; mad.lo.u32 %r14, %r12, %r13, %r11;
  mad.wide.u32 %rd2, %r14, 4, %rd1;
  mad.lo.u32 %r15, %r10, 32, %r9; st.global.b32 [%rd2], %r15; ret;
}
)");
  Buffer<uint32_t> out(6 * 4 * 5 * 2);
  absl::Status status =
      kernels.launch("k", {.grid = {3, 2}, .block = {4, 5, 2}}, out);
  ASSERT_TRUE(status.ok()) << status;
  for (uint32_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], i % 40);
}

constexpr const char *tile = ".shared .align 4 .b8 tile[1024];\n";
constexpr const char *exchange = R"(
    mov.u32 %r4, tile; shl.b32 %r5, %r1, 2; add.u32 %r4, %r4, %r5;
    st.shared.b32 [%r4], %r1;
    BARRIER
    xor.b32 %r6, %r5, 128; mov.u32 %r7, tile; add.u32 %r7, %r7, %r6;
    ld.shared.b32 %r9, [%r7]; )";
std::string exchangeWith(const std::string &barrier) {
  std::string text = exchange;
  text.replace(text.find("BARRIER"), 7, barrier);
  return kernel(tile, text + store);
}

TEST(Barrier, WarpsSeeWhatOthersWroteBefore) {
  Outcome found = run(exchangeWith("bar.sync 0;"));
  ASSERT_TRUE(found.status.ok()) << found.status;
  for (uint32_t t = 0; t < 64; ++t)
    EXPECT_EQ(found.values[t], t ^ 32);
  EXPECT_TRUE(run(exchangeWith("barrier.sync.aligned 3, 64;")).status.ok());
}
TEST(Barrier, ARaceIsAnError) {
  absl::Status status = run(exchangeWith("")).status;
  EXPECT_TRUE(failsWith(status, "race at shared address"));
  EXPECT_TRUE(
      failsWith(status, "this write of warp 1 and an access of warp 0"));
  EXPECT_TRUE(failsWith(status, "'st.shared.b32 [%r4], %r1', block (0,0,0), "
                                "thread (32,0,0)"));
  // One warp alone cannot race with another.
  EXPECT_TRUE(run(kernel(tile, "mov.u32 %r4, tile; st.shared.b32 [%r4], 1; "
                               "ld.shared.b32 %r9, [%r4]; st.global.b32 "
                               "[%rd2], %r9; ret;"),
                  32)
                  .status.ok());
}
TEST(Barrier, OverwritingWhatOthersReadIsARace) {
  std::string text = exchangeWith("bar.sync 0;");
  std::string again = "st.shared.b32 [%r4], 5; ";
  text.insert(text.find("st.global"), again);
  EXPECT_TRUE(failsWith(run(text).status, "race at shared address"));
  text.insert(text.find(again), "bar.sync 0; ");
  EXPECT_TRUE(run(text).status.ok());
}
TEST(Barrier, ABarrierOfOtherWarpsDoesNotOrder) {
  // Warps 0 and 1 meet at barrier 1, but warp 2 reads what warp 0 wrote.
  std::string text = kernel(tile, absl::StrCat(R"(
    mov.u32 %r4, tile; shr.u32 %r5, %r1, 5;
    setp.eq.u32 %p1, %r5, 0; @%p1 st.shared.b32 [%r4], 1;
    setp.lt.u32 %p2, %r5, 2; @!%p2 bra READ; bar.sync 1, 64; bra END;
    READ: ld.shared.b32 %r9, [%r4];
    END: )",
                                               store));
  EXPECT_TRUE(failsWith(run(text, 96).status, "race at shared address"));
}
TEST(Barrier, AThreadThatEndedIsMissed) {
  absl::Status status =
      run(kernel("", "setp.eq.u32 %p1, %r1, 40; @%p1 ret; bar.sync 0; ret;"))
          .status;
  EXPECT_TRUE(failsWith(status, "have ended and never come here"));
  status =
      run(kernel("", "setp.ge.u32 %p1, %r1, 32; @%p1 ret; bar.sync 0; ret;"))
          .status;
  EXPECT_TRUE(failsWith(status, "barrier 0 has 32 of 64 threads"));
}
TEST(Barrier, LanesAtTwoBarriersAreStuck) {
  absl::Status status = run(kernel("", R"(
    setp.lt.u32 %p1, %r1, 8; @%p1 bra A; bar.sync 0; bra END;
    A: bar.sync 0; END: ret;)"))
                            .status;
  EXPECT_TRUE(failsWith(status, "wait for each other at different places"));
}
TEST(Barrier, Reductions) {
  Outcome found = run(kernel("", absl::StrCat(R"(
    setp.lt.u32 %p1, %r1, 10; bar.red.popc.u32 %r2, 0, %p1;
    bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, %p1;
    selp.b32 %r3, 1000, 0, %p2; selp.b32 %r4, 100, 0, %p3;
    add.u32 %r9, %r2, %r3; add.u32 %r9, %r9, %r4;)",
                                              store)));
  ASSERT_TRUE(found.status.ok()) << found.status;
  EXPECT_EQ(found.values, std::vector<uint32_t>(64, 110));
}

TEST(Control, TrapAndLimit) {
  EXPECT_TRUE(failsWith(
      run(kernel("", "setp.eq.u32 %p1, %r1, 37; @%p1 trap; ret;")).status,
      "trap; line 9"));
  Kernels endless = Kernels::fromText(kernel("", "LOOP: bra LOOP;"));
  Buffer<uint32_t> out(32);
  EXPECT_TRUE(failsWith(
      endless.launch("k", {.grid = {}, .block = {32}, .maxInstructions = 1000},
                     out),
      "more than 1000 instructions"));
}

} // namespace
} // namespace meshwork::ptx
