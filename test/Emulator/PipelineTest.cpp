// A product as kernels of sm_90a make it: a warp loads tiles by TMA into a ring
// of stages, a warpgroup multiplies them.
#include "test/Emulator/Hopper.h"

namespace meshwork::ptx {
namespace {

constexpr unsigned m = 64, n = 64, k = 232, tileK = 64, numTiles = 4;
constexpr unsigned numStages = 2, tileBytes = 64 * tileK * 2;
constexpr unsigned stageBytes = 2 * tileBytes; // A, then B
constexpr uint64_t descriptor = 1ull << 62 | (1024ull >> 4) << 32 | 1ull << 16;

std::string full(unsigned tile) {
  return absl::StrCat("%bar+", tile % numStages * 8);
}
std::string empty(unsigned tile) {
  return absl::StrCat("%bar+", 16 + tile % numStages * 8);
}
/// Parity of a tile's use of its stage.
unsigned parity(unsigned tile) { return tile / numStages % 2; }

std::string loadTile(unsigned tile) {
  std::string text = waitFor(empty(tile), absl::StrCat(1 - parity(tile)),
                             absl::StrCat("EMPTY", tile));
  absl::StrAppend(&text, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [",
                  full(tile), "], ", stageBytes, ";\n");
  unsigned to = tile % numStages * stageBytes;
  for (const char *map : {"%map", "%in"}) {
    absl::StrAppend(&text,
                    "cp.async.bulk.tensor.2d.shared::cluster.global.tile."
                    "mbarrier::complete_tx::bytes [%tile+",
                    to, "], [", map, ", {", tile * tileK, ", 0}], [",
                    full(tile), "];\n");
    to += tileBytes;
  }
  return text;
}

std::string multiplyTile(unsigned tile) {
  std::string text = waitFor(full(tile), absl::StrCat(parity(tile)),
                             absl::StrCat("FULL", tile));
  text += "wgmma.fence.sync.aligned;\n";
  for (unsigned step = 0; step < tileK / 16; ++step) {
    unsigned a = tile % numStages * stageBytes + step * 32;
    text += setDescriptor(1, descriptor, a);
    text += setDescriptor(2, descriptor, a + tileBytes);
    absl::StrAppend(&text, "setp.ne.u32 %p1, ", tile + step, ", 0;\n",
                    "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {",
                    registerList(n / 2), "}, %rd1, %rd2, %p1, 1, 1, 0, 0;\n");
  }
  absl::StrAppend(&text, "wgmma.commit_group.sync.aligned;\n",
                  "wgmma.wait_group.sync.aligned 0;\n",
                  "@%p3 mbarrier.arrive.shared::cta.b64 _, [", empty(tile),
                  "];\n");
  return text;
}

std::string product() {
  std::string text = R"(
  setp.eq.u32 %p3, %lane, 0; // arrives for its warp
  setp.ne.u32 %p0, %thread, 0; @%p0 bra READY;
  mbarrier.init.shared::cta.b64 [%bar], 1;
  mbarrier.init.shared::cta.b64 [%bar+8], 1;
  mbarrier.init.shared::cta.b64 [%bar+16], 4;
  mbarrier.init.shared::cta.b64 [%bar+24], 4;
  fence.mbarrier_init.release.cluster;
  READY: bar.sync 0;
  setp.lt.u32 %p0, %warp, 4; @%p0 bra MULTIPLY;
  setmaxnreg.dec.sync.aligned.u32 40;
  @!%p3 bra END;
)";
  for (unsigned tile = 0; tile < numTiles; ++tile)
    text += loadTile(tile);
  text += "bra END;\nMULTIPLY: setmaxnreg.inc.sync.aligned.u32 232;\n";
  for (unsigned tile = 0; tile < numTiles; ++tile)
    text += multiplyTile(tile);
  return text + storeSums(n) + "END:\n";
}

struct Problem {
  Problem() : a(m * k), b(n * k), out(m * n), maps(1) {
    for (unsigned i = 0; i < a.size(); ++i)
      a[i] = toBf16(int(i * 7 % 17) - 8);
    for (unsigned i = 0; i < b.size(); ++i)
      b[i] = toBf16(int(i * 5 % 13) - 6);
    maps[0] = mapOf(b, k, n, k * 2, tileK, n);
  }
  absl::Status run(const std::string &text) {
    return runHopper(text, 160, numStages * stageBytes, out, maps,
                     mapOf(a, k, m, k * 2, tileK, m));
  }
  float expected(unsigned row, unsigned column) {
    float sum = 0;
    for (unsigned i = 0; i < k; ++i)
      sum += wide(a[row * k + i]) * wide(b[column * k + i]);
    return sum;
  }
  Buffer<uint16_t> a, b;
  Buffer<float> out;
  Buffer<TensorMap> maps;
};

::testing::AssertionResult failsWith(const std::string &replaced,
                                     const std::string &by,
                                     const std::string &why) {
  return ptx::failsWith(
      Problem().run(absl::StrReplaceAll(product(), {{replaced, by}})), why);
}

/// The last tile reaches beyond the matrices: zeros.
TEST(Pipeline, Product) {
  Problem problem;
  absl::Status status = problem.run(product());
  ASSERT_TRUE(status.ok()) << status;
  for (unsigned i = 0; i < m * n; ++i)
    ASSERT_EQ(problem.out[i], problem.expected(i / n, i % n)) << i;
}
TEST(Pipeline, StagesAreNotFilledWhileTheyAreRead) {
  std::string wait = "wgmma.wait_group.sync.aligned 0;\n",
              arrive = "@%p3 mbarrier.arrive.shared::cta.b64 _, [%bar+16];\n";
  EXPECT_TRUE(failsWith(wait + arrive, arrive + wait, "race at shared"));
}
TEST(Pipeline, TilesAreThereBeforeTheyAreRead) {
  EXPECT_TRUE(failsWith(waitFor(full(1), "0", "FULL1"), "", "race at shared"));
}
TEST(Pipeline, EveryWarpMustFreeItsStage) {
  EXPECT_TRUE(failsWith("setp.eq.u32 %p3, %lane, 0;",
                        "and.b32 %r1, %thread, 127; setp.eq.u32 %p3, %r1, 0;",
                        "lacks 3 of 4 arrivals and 0 bytes"));
}
TEST(Pipeline, AWrongCoordinateIsAWrongSum) {
  Problem problem;
  absl::Status status = problem.run(
      absl::StrReplaceAll(product(), {{"[%in, {64, 0}]", "[%in, {72, 0}]"}}));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_NE(problem.out[0], problem.expected(0, 0));
}

} // namespace
} // namespace meshwork::ptx
