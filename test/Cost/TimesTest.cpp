#include <gtest/gtest.h>

#include "lib/Cost/Times.h"

#include <set>

namespace meshwork::cost {
namespace {

using plan::CollectiveKind;
using Axes = std::vector<uint32_t>;

constexpr CollectiveKind allKinds[] = {
    CollectiveKind::all_reduce, CollectiveKind::all_gather,
    CollectiveKind::reduce_scatter, CollectiveKind::all_to_all,
    CollectiveKind::permute};

constexpr Work f32Product{Work::product, Arithmetic::f32},
    fp8Product{Work::product, Arithmetic::fp8};

Machine machine(uint32_t ranksPerNode) {
  Machine m;
  m.device = spec::Device::cuda;
  m.ranksPerNode = ranksPerNode;
  m.flops = {1e12, 2e12, 4e12};
  m.attention = {5e11, 1e12, 1e12};
  m.memory = 1e10;
  m.kernels = 5e9;
  m.host.bandwidth = 2e9;
  m.launch = 1e-6;
  m.links = {Link{1e-6, 4e9, true}, Link{2e-6, 2e9, false},
             Link{3e-6, 1e9, false}};
  return m;
}

/// PARALLELISM: M bytes of the whole tensor, N ranks; each sends (N-1)/N M, of
/// an all_reduce 2 (N-1)/N M, a ring shift M.
TEST(Times, RingsSendWhatTheirFormsSay) {
  for (uint64_t ranks : {1, 2, 3, 8}) {
    uint64_t whole = 24 * 1024, part = whole / ranks * (ranks - 1);
    EXPECT_EQ(bytesSent(CollectiveKind::all_reduce, whole, ranks), 2 * part);
    EXPECT_EQ(bytesSent(CollectiveKind::all_gather, whole, ranks), part);
    EXPECT_EQ(bytesSent(CollectiveKind::reduce_scatter, whole, ranks), part);
    EXPECT_EQ(bytesSent(CollectiveKind::all_to_all, whole, ranks), part);
    EXPECT_EQ(bytesSent(CollectiveKind::permute, whole, ranks), whole);
  }
  EXPECT_EQ(bytesSent(CollectiveKind::all_reduce, UINT64_MAX, 1 << 20),
            UINT64_MAX);
}

/// Each way over the slowest link between neighbours along the axis.
TEST(Times, ATransferTakesLatencyAndItsBytes) {
  Times times(machine(8), {4, 8});
  EXPECT_DOUBLE_EQ(times.transfer(4e9, 0), 3e-6 + 4);
  EXPECT_DOUBLE_EQ(times.transfer(4e9, 1), 2e-6 + 2);
}

TEST(Times, ACopyToTheHostTakesItsBytesOverThatLink) {
  Times times(machine(8), {4});
  EXPECT_DOUBLE_EQ(times.hostCopy(4e9), 1e-6 + 2);
  EXPECT_FALSE(times.hostCopyTakesCores());
  Machine shared = machine(8);
  shared.host.latency = 5e-6;
  shared.host.sharedBy = 2;
  shared.host.takesCores = true;
  Times slower(shared, {4});
  EXPECT_DOUBLE_EQ(slower.hostCopy(4e9), 6e-6 + 4);
  EXPECT_TRUE(slower.hostCopyTakesCores());
}

/// Of a collective's inputs: those of a gather are a part of the whole.
TEST(Times, ACollectiveTakesLatencyAndWhatItSends) {
  Times times(machine(8), {4, 2});
  for (CollectiveKind kind : allKinds) {
    uint64_t whole = 8 << 20;
    uint64_t input = kind == CollectiveKind::all_gather ? whole / 4 : whole;
    double sent = static_cast<double>(bytesSent(kind, whole, 4));
    EXPECT_DOUBLE_EQ(
        times.collective(kind, static_cast<double>(input), Axes{0}),
        2e-6 + sent / 2e9)
        << plan::EnumNameCollectiveKind(kind);
  }
}

TEST(Times, AnInstructionTakesTheSlowerOfFlopsAndBytes) {
  Times times(machine(8), {8});
  EXPECT_DOUBLE_EQ(times.instruction(f32Product, 4e9, 1e6), 4e-3 + 1e-6);
  EXPECT_DOUBLE_EQ(times.instruction(fp8Product, 4e9, 1e6), 1e-3 + 1e-6);
  EXPECT_DOUBLE_EQ(times.instruction(fp8Product, 4e9, 1e9), 0.1 + 1e-6);
}

TEST(Times, KindsOfWorkHaveRatesOfTheirOwn) {
  Machine on = machine(8);
  on.halfSize = 1e9;
  Times times(on, {1});
  // At so many flops a product reaches half of its rate.
  EXPECT_DOUBLE_EQ(times.instruction(f32Product, 1e9, 0), 2e-3 + 1e-6);
  EXPECT_DOUBLE_EQ(
      times.instruction({Work::attention, Arithmetic::bf16}, 1e9, 0),
      1e-3 + 1e-6);
  EXPECT_DOUBLE_EQ(times.instruction({}, 1e6, 1e6), 2e-4 + 1e-6);
  EXPECT_DOUBLE_EQ(times.instruction({Work::attention}, 1e6, 1e6), 1e-4 + 1e-6);
}

TEST(Times, RanksOfANodeShareItsCores) {
  Machine node = machine(4);
  node.cores = 8;
  Times alone(node, {1}), two(node, {2}), nodes(node, {8});
  EXPECT_DOUBLE_EQ(alone.instruction(f32Product, 4e9, 0), 4e-3 + 1e-6);
  EXPECT_DOUBLE_EQ(two.instruction(f32Product, 4e9, 0), 8e-3 + 1e-6);
  EXPECT_DOUBLE_EQ(nodes.instruction(f32Product, 4e9, 0), 16e-3 + 1e-6);
  EXPECT_DOUBLE_EQ(nodes.instruction(f32Product, 0, 1e6), 4e-4 + 1e-6);
}

/// The slowest link of any group, rank by rank.
bool groupsCross(const std::vector<uint64_t> &mesh, const Axes &axes,
                 uint64_t perNode) {
  uint64_t ranks = 1;
  for (uint64_t size : mesh)
    ranks *= size;
  for (uint64_t rank = 0; rank < ranks; ++rank) {
    uint64_t first = rank, stride = ranks;
    for (uint32_t axis = 0; axis < mesh.size(); ++axis) {
      stride /= mesh[axis];
      if (std::find(axes.begin(), axes.end(), axis) != axes.end())
        first -= rank / stride % mesh[axis] * stride;
    }
    if (first / perNode != rank / perNode)
      return true;
  }
  return false;
}

TEST(Times, AGroupsLinkIsTheSlowestThatItCrosses) {
  const std::vector<uint64_t> meshes[] = {
      {8}, {2, 4}, {4, 2}, {2, 3, 2}, {3, 4}, {1, 4, 1, 2}, {2, 1, 6}};
  for (const std::vector<uint64_t> &mesh : meshes)
    for (uint32_t perNode = 1; perNode <= 13; ++perNode)
      for (uint32_t subset = 0; subset < 1u << mesh.size(); ++subset) {
        Axes axes;
        for (uint32_t axis = 0; axis < mesh.size(); ++axis)
          if (subset >> axis & 1)
            axes.push_back(axis);
        EXPECT_EQ(Times(machine(perNode), mesh).linkOf(axes) ==
                      LinkClass::betweenNodes,
                  groupsCross(mesh, axes, perNode))
            << perNode << " ranks a node, subset " << subset;
      }
}

TEST(Times, RanksOfOneNodeOnCpusAreThreadsOrProcesses) {
  Machine cpus = machine(4);
  cpus.device = spec::Device::cpu;
  Times threads(cpus, {2, 2}), processes(cpus, {2, 2}, Ranks::processes),
      nodes(cpus, {4, 2});
  EXPECT_EQ(threads.linkOf(Axes{0}), LinkClass::inProcess);
  EXPECT_EQ(processes.linkOf(Axes{0}), LinkClass::withinNode);
  EXPECT_EQ(nodes.linkOf(Axes{1}), LinkClass::withinNode);
  EXPECT_TRUE(threads.takesCores(Axes{0}));
  EXPECT_FALSE(processes.takesCores(Axes{0}));
  cpus.links[0].takesCores = false;
  cpus.links[1].takesCores = true; // they may be started as processes
  EXPECT_TRUE(Times(cpus, {2, 2}).takesCores(Axes{0}));
  EXPECT_FALSE(nodes.takesCores(Axes{0}));
}

} // namespace
} // namespace meshwork::cost
