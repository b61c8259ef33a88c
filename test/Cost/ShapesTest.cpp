// Products by tiles, attention by heads and keys; and that no figure of a
// machine that is made better makes anything slower.
#include <gtest/gtest.h>

#include "lib/Cost/ListClock.h"
#include "lib/Cost/Times.h"

namespace meshwork::cost {
namespace {

Machine tiled() {
  Machine m;
  m.device = spec::Device::cuda;
  m.ranksPerNode = 8;
  m.flops.fill(1e12);
  m.attention.fill(1e12);
  m.gradient.fill(5e11);
  m.memory = m.kernels = m.host.bandwidth = 1e15;
  m.products = {10, {{64, 64}}, 0, 0};
  m.links.fill(Link{1e-6, 1e10});
  return m;
}

double seconds(const Machine &machine, ProductShape shape,
               Arithmetic type = Arithmetic::bf16) {
  double flops = 2 * shape.batch * shape.m * shape.n * shape.k;
  return Times(machine, {1})
      .instruction({Work::product, type, shape}, flops, 0);
}

/// Ten multiprocessors run ten tiles at once: eleven take as long as twenty.
TEST(ProductsByTiles, TakeWholeWaves) {
  double wave = 2 * 64 * 64 * 512 / 1e11; // of a multiprocessor
  EXPECT_DOUBLE_EQ(seconds(tiled(), {1, 640, 64, 512, 2}), wave);
  EXPECT_DOUBLE_EQ(seconds(tiled(), {1, 704, 64, 512, 2}), 2 * wave);
  EXPECT_DOUBLE_EQ(seconds(tiled(), {1, 1280, 64, 512, 2}), 2 * wave);
  EXPECT_DOUBLE_EQ(seconds(tiled(), {10, 64, 64, 512, 2}), wave);
  EXPECT_DOUBLE_EQ(seconds(tiled(), {1, 1, 1, 512, 2}), wave); // a whole tile
}

TEST(ProductsByTiles, TakeTheTileThatEndsFirst) {
  Machine m = tiled();
  m.products.tiles = {{128, 64}, {64, 64}};
  double wave = 2 * 64 * 64 * 512 / 1e11;
  EXPECT_DOUBLE_EQ(seconds(m, {1, 64, 640, 512, 2}), wave);
  // Ten tiles that stand, and at a better rate than twenty smaller ones.
  m.products.halfTile = 32;
  EXPECT_DOUBLE_EQ(seconds(m, {1, 64, 1280, 512, 2}),
                   2 * wave * (1 + 32 / (128 * 64 / 192.0)));
}

/// One tile alone would leave nine multiprocessors idle. Eight parts write and
/// read their sums.
TEST(ProductsByTiles, CutALongK) {
  Machine m = tiled();
  double whole = 2 * 64 * 64 * 8192 / 1e11;
  EXPECT_DOUBLE_EQ(seconds(m, {1, 64, 64, 8192, 2}),
                   whole / 8 + 8 * 64 * 64 * 8 / 1e15);
  m.memory = 1e8; // too dear
  EXPECT_DOUBLE_EQ(seconds(m, {1, 64, 64, 8192, 2}), whole);
}

/// A gelu in the product leaves its argument behind, when the sums are done.
TEST(ProductsByTiles, MoveWhatStandsAsideAfterwards) {
  Machine m = tiled();
  double wave = 2 * 64 * 64 * 512 / 1e11;
  m.memory = 1e12;
  EXPECT_DOUBLE_EQ(seconds(m, {1, 640, 64, 512, 2, 640 * 64 * 2}),
                   wave + 640 * 64 * 2 / 1e12);
}

/// In bytes, since 8 bits take half the time to load.
TEST(ProductsByTiles, BeginTakesAsLongAsSoMuchK) {
  Machine m = tiled();
  m.products.begin = 256;
  EXPECT_DOUBLE_EQ(seconds(m, {1, 64, 64, 128, 2}), 2 * 64 * 64 * 256 / 1e11);
  EXPECT_DOUBLE_EQ(seconds(m, {1, 64, 64, 128, 1}, Arithmetic::fp8),
                   2 * 64 * 64 * 384 / 1e11);
}

TEST(Attention, HasRatesByDirectionHeadAndKeys) {
  Machine m = tiled();
  m.halfHead = 64;
  m.halfKeys = 100;
  m.halfHeadOfGradient = 128;
  m.halfKeysOfGradient = 300;
  auto rate = [&](AttentionShape shape) {
    return 1e12 / Times(m, {1}).instruction(
                      {Work::attention, Arithmetic::bf16, {}, shape}, 1e12, 0);
  };
  EXPECT_DOUBLE_EQ(rate({false, 64, 100}), 1e12 / 4);
  EXPECT_DOUBLE_EQ(rate({true, 128, 300}), 5e11 / 4);
  EXPECT_DOUBLE_EQ(rate({false, 64, 300}), 1e12 * 3 / 8);
  EXPECT_DOUBLE_EQ(rate({false, 0, 0}), 1e12); // not known
}

/// What a rank does in a step of some size, on one machine.
double everything(const Machine &machine) {
  Times times(machine, {3, 4, 8});
  double sum = 0;
  for (double size : {100.0, 1000.0, 5000.0, 30000.0})
    for (auto type : {Arithmetic::f32, Arithmetic::bf16, Arithmetic::fp8}) {
      double flops = 2 * size * size * 4096;
      sum += times.instruction(
          {Work::product, type, {1, size, size, 4096, 2, size * size}}, flops,
          4 * size * size);
      for (bool isGradient : {false, true})
        sum += times.instruction(
            {Work::attention, type, {}, {isGradient, 64, size}}, flops, 0);
      sum += times.instruction({}, size, size * size);
    }
  for (uint32_t axes = 1; axes < 8; ++axes) {
    std::vector<uint32_t> over;
    for (uint32_t axis = 0; axis < 3; ++axis)
      if (axes >> axis & 1)
        over.push_back(axis);
    for (auto kind : plan::EnumValuesCollectiveKind())
      for (double bytes : {1.0, 1e6, 1e10}) {
        ListClock clock(machine.slowdown, machine.hostInstruction);
        clock.start({times.collective(kind, bytes, over), 1, false,
                     times.usesAdapters(over), over});
        clock.start({times.collective(kind, bytes, over), 2, false,
                     times.usesAdapters(over), over});
        clock.compute(times.instruction({Work::product}, 1e9, 0));
        clock.wait(1, 1);
        clock.wait(2, 1);
        sum += clock.now();
      }
  }
  return sum + times.hostCopy(1e9) + times.transfer(1e6, 0);
}

TEST(BetterFigures, MakeNothingSlower) {
  Machine base = *findShipped("h100x8");
  base.spine = {2, 0.5};
  base.jitter = 0.01;
  base.late = 1e-5;
  base.hostInstruction = 1e-5;
  const double before = everything(base);
  using Change = void (*)(Machine &, double);
  const std::pair<const char *, Change> better[] = {
      {"flops", [](Machine &m, double f) { m.flops[1] *= f; }},
      {"attention", [](Machine &m, double f) { m.attention[1] *= f; }},
      {"attention.backward", [](Machine &m, double f) { m.gradient[1] *= f; }},
      {"attention.half_head", [](Machine &m, double f) { m.halfHead /= f; }},
      {"attention.half_keys", [](Machine &m, double f) { m.halfKeys /= f; }},
      {"attention.backward.half_head",
       [](Machine &m, double f) { m.halfHeadOfGradient /= f; }},
      {"attention.backward.half_keys",
       [](Machine &m, double f) { m.halfKeysOfGradient /= f; }},
      {"products.half_tile",
       [](Machine &m, double f) { m.products.halfTile /= f; }},
      {"products.begin", [](Machine &m, double f) { m.products.begin /= f; }},
      {"products.tiles",
       [](Machine &m, double) { m.products.tiles.push_back({192, 192}); }},
      {"memory", [](Machine &m, double f) { m.memory *= f; }},
      {"memory.kernels", [](Machine &m, double f) { m.kernels *= f; }},
      {"link.host.bandwidth",
       [](Machine &m, double f) { m.host.bandwidth *= f; }},
      {"launch.overhead", [](Machine &m, double f) { m.launch /= f; }},
      {"host.instruction",
       [](Machine &m, double f) { m.hostInstruction /= f; }},
      {"node.adapters",
       [](Machine &m, double f) {
         m.adapters = static_cast<uint32_t>(m.adapters * f) + 1;
       }},
      {"spine.share",
       [](Machine &m, double f) {
         m.spine.share = std::min(1.0, m.spine.share * f);
       }},
      {"spine.nodes", [](Machine &m, double) { m.spine.nodes += 2; }},
      {"nodes.jitter", [](Machine &m, double f) { m.jitter /= f; }},
      {"ranks.jitter", [](Machine &m, double f) { m.rankJitter /= f; }},
      {"nodes.late", [](Machine &m, double f) { m.late /= f; }},
      {"overlap.slowdown", [](Machine &m, double f) { m.slowdown /= f; }},
      {"latency", [](Machine &m, double f) { m.links[1].latency /= f; }},
      {"bandwidth", [](Machine &m, double f) { m.links[1].bandwidth *= f; }},
      {"hop", [](Machine &m, double f) { m.links[2].hop /= f; }},
      {"half_size", [](Machine &m, double f) { m.links[2].halfSize /= f; }},
      {"outer bandwidth",
       [](Machine &m, double f) { m.links[2].bandwidth *= f; }}};
  for (const auto &[name, change] : better)
    for (double by : {1.01, 1.5, 10.0}) {
      Machine changed = base;
      change(changed, by);
      EXPECT_LE(everything(changed), before) << name << " by " << by;
      EXPECT_NE(changed, base) << name;
    }
}

} // namespace
} // namespace meshwork::cost
