// mbarriers, and bulk copies that signal them.
#include "test/Emulator/Hopper.h"

namespace meshwork::ptx {
namespace {

constexpr unsigned numTiles = 10, numBuffers = 3, tileBytes = 128;
constexpr unsigned allBytes = numTiles * tileBytes;

/// Warp 2 copies tiles to a ring of buffers, warps 0 and 1 both write them to
/// `out`, one after the other.
std::string ring() {
  return absl::StrCat(R"(
  mov.u32 %r0, 0; mov.u32 %r1, 0; // tile, buffer
  setp.ne.u32 %p0, %thread, 0; @%p0 bra READY;
  INIT: shl.b32 %r2, %r1, 3; add.u32 %r2, %r2, %bar;
  mbarrier.init.shared::cta.b64 [%r2], 1;
  mbarrier.init.shared::cta.b64 [%r2+24], 64;
  add.u32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, 3; @%p0 bra INIT;
  fence.mbarrier_init.release.cluster;
  mov.u32 %r1, 0;
  READY: bar.sync 0;
  setp.lt.u32 %p0, %warp, 2; @%p0 bra CONSUMER;
  setp.ne.u32 %p0, %thread, 64; @%p0 bra END;
  mov.u32 %r3, 1; // parity
  PRODUCE: shl.b32 %r2, %r1, 3; add.u32 %r2, %r2, %bar;
)",
                      waitFor("%r2+24", "%r3", "EMPTY"), R"(
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
  shl.b32 %r4, %r1, 7; add.u32 %r4, %r4, %tile;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%in], 128, [%r2];
  add.s64 %in, %in, 128;
  add.u32 %r1, %r1, 1; setp.eq.u32 %p0, %r1, 3;
  @%p0 mov.u32 %r1, 0; @%p0 xor.b32 %r3, %r3, 1;
  add.u32 %r0, %r0, 1; setp.lt.u32 %p0, %r0, 10; @%p0 bra PRODUCE;
  bra END;

  CONSUMER: mov.u32 %r3, 0;
  shl.b32 %r5, %lane, 2; mad.lo.u32 %r7, %warp, 1280, %r5;
  cvt.u64.u32 %rd0, %r7; add.s64 %out, %out, %rd0;
  CONSUME: shl.b32 %r2, %r1, 3; add.u32 %r2, %r2, %bar;
)",
                      waitFor("%r2", "%r3", "FULL"), R"(
  shl.b32 %r4, %r1, 7; add.u32 %r4, %r4, %tile; add.u32 %r4, %r4, %r5;
  ld.shared.b32 %r6, [%r4];
  st.global.b32 [%out], %r6; add.s64 %out, %out, 128;
  mbarrier.arrive.shared::cta.b64 %rd1, [%r2+24];
  add.u32 %r1, %r1, 1; setp.eq.u32 %p0, %r1, 3;
  @%p0 mov.u32 %r1, 0; @%p0 xor.b32 %r3, %r3, 1;
  add.u32 %r0, %r0, 1; setp.lt.u32 %p0, %r0, 10; @%p0 bra CONSUME;
  END:
)");
}

struct Ring {
  Ring() : in(allBytes / 4), out(2 * in.size()) {
    for (uint32_t i = 0; i < in.size(); ++i)
      in[i] = 7 * i;
  }
  absl::Status run(const std::string &text) {
    return runHopper(text, 96, numBuffers * tileBytes, out, in);
  }
  Buffer<uint32_t> in, out;
};
::testing::AssertionResult failsWith(const std::string &replaced,
                                     const std::string &by,
                                     const std::string &why) {
  return ptx::failsWith(
      Ring().run(absl::StrReplaceAll(ring(), {{replaced, by}})), why);
}

TEST(Mbarrier, AProducerAndTwoConsumersShareARing) {
  Ring ring_;
  absl::Status status = ring_.run(ring());
  ASSERT_TRUE(status.ok()) << status;
  for (uint32_t i = 0; i < ring_.out.size(); ++i)
    ASSERT_EQ(ring_.out[i], 7 * (i % ring_.in.size())) << i;
}
TEST(Mbarrier, ABufferInUseIsNotFilledAgain) {
  std::string read = "ld.shared.b32 %r6, [%r4];",
              arrive = "mbarrier.arrive.shared::cta.b64 %rd1, [%r2+24];";
  absl::Status status = Ring().run(absl::StrReplaceAll(
      ring(), {{read, arrive}, {arrive, read}})); // the other way round
  EXPECT_TRUE(ptx::failsWith(status, "race at shared address"));
  EXPECT_TRUE(failsWith(waitFor("%r2+24", "%r3", "EMPTY"), "",
                        "more than the 1 arrivals of a phase"));
}
TEST(Mbarrier, ATileIsNotReadBeforeItIsThere) {
  EXPECT_TRUE(
      failsWith(waitFor("%r2", "%r3", "FULL"), "", "race at shared address"));
}
TEST(Mbarrier, DeadlocksAreNamed) {
  EXPECT_TRUE(failsWith(
      "mbarrier.arrive.shared::cta.b64 %rd1, [%r2+24];", "",
      "deadlock: no warp can go on, no copy is under way; warp 0 waits for "
      "phase 1 of the mbarrier at shared address 0x400, which lacks 1 of 1 "
      "arrivals and 0 bytes; warp 2 waits for phase 0 of the mbarrier at "
      "shared address 0x418, which lacks 64 of 64 arrivals and 0 bytes"));
  EXPECT_TRUE(failsWith("_, [%r2], 128;", "_, [%r2], 144;",
                        "lacks 0 of 1 arrivals and 16 bytes"));
}
TEST(Mbarrier, CountsAreChecked) {
  EXPECT_TRUE(failsWith("_, [%r2], 128;", "_, [%r2], 112;",
                        "a bulk copy of 128 bytes signals an mbarrier that "
                        "expects 112"));
  EXPECT_TRUE(failsWith("mbarrier.arrive.expect_tx",
                        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], "
                        "16; mbarrier.arrive.expect_tx",
                        "more than the 1 arrivals of a phase"));
  EXPECT_TRUE(failsWith("mbarrier.init.shared::cta.b64 [%r2+24], 64;", "",
                        "no mbarrier was initialized at"));
  EXPECT_TRUE(failsWith("fence.mbarrier_init.release.cluster;", "",
                        "initialized without a fence.mbarrier_init"));
  EXPECT_TRUE(
      failsWith("READY: bar.sync 0;", "READY:", "race at shared address"));
  EXPECT_TRUE(failsWith("fence.mbarrier_init.release.cluster;",
                        "fence.mbarrier_init.release.cluster;\n"
                        "st.shared.b32 [%bar], 0;",
                        "was overwritten"));
}

/// Warps that wait at a barrier of their own while another waits at an
/// mbarrier.
TEST(Mbarrier, BesideBarriersOfPartOfTheBlock) {
  Buffer<uint32_t> out(96), in(1);
  absl::Status status = runHopper(absl::StrCat(R"(
  setp.ne.u32 %p0, %thread, 0; @%p0 bra READY;
  mbarrier.init.shared::cta.b64 [%bar], 64;
  READY: bar.sync 0;
  setp.ne.u32 %p0, %warp, 0; @%p0 bra OTHERS;
)",
                                               waitFor("%bar", "0", "WAIT"), R"(
  ld.shared.b32 %r1, [%tile+4]; bra WRITE;
  OTHERS: bar.sync 1, 64;
  setp.eq.u32 %p1, %thread, 32; @%p1 st.shared.b32 [%tile+4], 5;
  bar.sync 1, 64; ld.shared.b32 %r1, [%tile+4];
  mbarrier.arrive.shared::cta.b64 _, [%bar];
  WRITE: mul.wide.u32 %rd0, %thread, 4; add.s64 %out, %out, %rd0;
  st.global.b32 [%out], %r1;
)"),
                                  96, 16, out, in);
  ASSERT_TRUE(status.ok()) << status;
  for (uint32_t value : out)
    ASSERT_EQ(value, 5u);
}

/// One lane waits for what another lane of its warp does later.
TEST(Mbarrier, LanesThatWaitDoNotHoldTheOthers) {
  Buffer<uint32_t> out(32), in(1);
  absl::Status status = runHopper(absl::StrCat(R"(
  mov.u32 %r1, 1;
  setp.ne.u32 %p0, %lane, 0; @%p0 bra OTHERS;
  mbarrier.init.shared::cta.b64 [%bar], 31;
  OTHERS: bar.warp.sync -1;
  @%p0 bra ARRIVE;
)",
                                               waitFor("%bar", "0", "WAIT"), R"(
  mov.u32 %r1, 2; bra WRITE;
  ARRIVE: mbarrier.arrive.shared::cta.b64 _, [%bar];
  WRITE: shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;
  mul.wide.u32 %rd0, %lane, 4; add.s64 %out, %out, %rd0;
  st.global.b32 [%out], %r2;
)"),
                                  32, 16, out, in);
  ASSERT_TRUE(status.ok()) << status;
  for (uint32_t value : out)
    ASSERT_EQ(value, 2u);
}

} // namespace
} // namespace meshwork::ptx
