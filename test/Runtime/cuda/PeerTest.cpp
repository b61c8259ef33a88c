// Collectives between ranks that share a GPU: the cases of
// CollectiveShapesTest, bit for bit, and what happens when a rank fails,
// differs or does not come.
#include "runtime/comm/Reduce.h"
#include "runtime/device/cuda/PeerTransport.h"
#include "test/Runtime/cuda/AsRanks.h"
#include "test/Runtime/cuda/DeviceCase.h"
#include <cmath>
#include <random>

namespace meshwork::runtime::cuda::test {
namespace {
using runtime::test::CollectiveCase;
using Kind = plan::CollectiveKind;

/// Each rank has a device object of its own: one context, one stream each.
void runOnPeers(CollectiveCase &one) {
  TestDevice common;
  InProcessTransport host(Mesh(one.mesh), {});
  PeerTransport transport(*common.driver, host);
  asRanks(one.ranks, [&](uint32_t rank) {
    TestDevice on;
    RankOfCase mine(on, one, rank);
    auto collective = transport.prepare(rank, mine.onDevice());
    expectOk(collective.status());
    CommTimes times;
    for (int round = 0; round < (one.inPlace ? 1 : 3); ++round)
      expectOk((*collective)->enqueue(on.stream, times));
    on.synchronize();
    mine.copyBack();
    // Memory stays until all have moved.
    expectOk(host.agree(rank, 0, "the end").status());
  });
}

class PeerShapes : public ::testing::TestWithParam<Kind> {};

TEST_P(PeerShapes, AreWhatLoopsGive) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    CollectiveCase one(GetParam(), seed);
    runOnPeers(one);
    ASSERT_EQ(one.firstDifference(), "")
        << "seed " << seed << ", " << one.describe();
  }
}

INSTANTIATE_TEST_SUITE_P(Collectives, PeerShapes,
                         ::testing::Values(Kind::all_reduce, Kind::all_gather,
                                           Kind::reduce_scatter,
                                           Kind::all_to_all, Kind::permute),
                         [](const auto &info) {
                           return std::string(
                               plan::EnumNameCollectiveKind(info.param));
                         });

/// One row of f32, in place.
CollectiveRequest rowOf(DevicePtr data, int64_t count, const char *name,
                        plan::Reduction reduction = plan::Reduction::sum) {
  Strided row{
      reinterpret_cast<std::byte *>(data), plan::DType::f32, {count}, {1}};
  return {Kind::all_reduce, reduction, {0}, {{row, row}}, name};
}

TEST(Peers, TakeTheMaximum) {
  InProcessTransport host(Mesh({3}), {});
  TestDevice common;
  PeerTransport transport(*common.driver, host);
  constexpr size_t count = 5000;
  asRanks(3, [&](uint32_t rank) {
    TestDevice on;
    DevicePtr data = on.allocate(count * 4);
    std::vector<float> mine(count);
    for (size_t i = 0; i < count; ++i)
      mine[i] = static_cast<float>((i + rank) % 3) - 5;
    mine[7] = rank == 1 ? NAN : 0;
    on.write(data, mine);
    auto collective =
        transport.prepare(rank, rowOf(data, count, "x", plan::Reduction::max));
    expectOk(collective.status());
    CommTimes times;
    expectOk((*collective)->enqueue(on.stream, times));
    std::vector<float> found = on.read<float>(data, count);
    EXPECT_TRUE(std::isnan(found[7]));
    found[7] = -3;
    EXPECT_EQ(found, std::vector<float>(count, -3));
    expectOk(host.agree(rank, 0, "the end").status());
  });
}

/// Devices differ in the bits of a NaN.
std::vector<uint16_t> withOneNan(std::vector<uint16_t> values) {
  for (uint16_t &value : values)
    if ((value & 0x7fff) > 0x7f80)
      value = 0x7fc0;
  return values;
}

/// Aligned rows travel 16 bytes at a time; the sums are still the host's, with
/// NaN, infinities and halfway cases among them.
TEST(Peers, SumWideUnitsAsTheHostDoes) {
  constexpr size_t count = 4096;
  constexpr uint32_t ranks = 4;
  std::mt19937 random(1);
  std::vector<std::vector<uint16_t>> values(ranks), sums(1);
  std::vector<const std::byte *> sources;
  for (std::vector<uint16_t> &rank : values) {
    for (size_t i = 0; i < count; ++i)
      rank.push_back(static_cast<uint16_t>(random()));
    sources.push_back(reinterpret_cast<const std::byte *>(rank.data()));
  }
  sums[0].resize(count);
  auto *sum = reinterpret_cast<std::byte *>(sums[0].data());
  reduceRun(plan::DType::bf16, plan::Reduction::sum, sources, 1, {&sum, 1}, 1,
            count);
  InProcessTransport host(Mesh({ranks}), {});
  TestDevice common;
  PeerTransport transport(*common.driver, host);
  asRanks(ranks, [&](uint32_t rank) {
    TestDevice on;
    DevicePtr data = on.allocate(count * 2);
    on.write(data, values[rank]);
    CollectiveRequest request = rowOf(data, count, "x");
    for (Strided *row : {&request.parts[0].src, &request.parts[0].dst})
      row->dtype = plan::DType::bf16;
    auto collective = transport.prepare(rank, request);
    expectOk(collective.status());
    CommTimes times;
    expectOk((*collective)->enqueue(on.stream, times));
    EXPECT_EQ(withOneNan(on.read<uint16_t>(data, count)), withOneNan(sums[0]));
    expectOk(host.agree(rank, 0, "the end").status());
  });
}

/// What was put into a stream before is seen by peers, and what comes after
/// does not overtake them.
TEST(Peers, KeepTheOrderOfStreams) {
  InProcessTransport host(Mesh({4}), {});
  TestDevice common;
  PeerTransport transport(*common.driver, host);
  constexpr size_t count = 100000;
  constexpr int rounds = 20;
  asRanks(4, [&](uint32_t rank) {
    TestDevice on;
    DevicePtr data = on.allocate(count * 4), kept = on.allocate(count * 4);
    on.write(kept, std::vector<float>(count, static_cast<float>(rank + 1)));
    auto collective = transport.prepare(rank, rowOf(data, count, "x"));
    expectOk(collective.status());
    CommTimes times;
    for (int round = 0; round < rounds; ++round) {
      on.expect(on.driver->copyOnDevice(data, kept, count * 4, on.stream),
                "copy");
      expectOk((*collective)->enqueue(on.stream, times));
    }
    EXPECT_EQ(on.read<float>(data, count), std::vector<float>(count, 10));
    expectOk(host.agree(rank, 0, "the end").status());
  });
}

TEST(Peers, NameWhoDiffersAndWhoFails) {
  InProcessTransport host(Mesh({2}), {});
  TestDevice common;
  PeerTransport transport(*common.driver, host);
  asRanks(2, [&](uint32_t rank) {
    TestDevice on;
    DevicePtr data = on.allocate(1024);
    auto odd = transport.prepare(
        rank, rowOf(data, 10 + rank, rank == 0 ? "mine" : "other"));
    expectOk(odd.status());
    CommTimes times;
    absl::Status status = (*odd)->enqueue(on.stream, times);
    EXPECT_EQ(status.message(),
              rank == 0 ? "all_reduce \"mine\" meets \"other\" of rank 1, "
                          "which differs from it"
                        : "all_reduce \"other\" meets \"mine\" of rank 0, "
                          "which differs from it");
    auto good = transport.prepare(rank, rowOf(data, 10, "x"));
    expectOk(good.status());
    if (rank == 1)
      return host.abort(rank, absl::InternalError("a kernel failed"));
    status = (*good)->enqueue(on.stream, times);
    EXPECT_EQ(status.message(),
              "stopped because rank 1 failed: a kernel failed");
  });
}

TEST(Peers, DoNotWaitForever) {
  InProcessTransport host(Mesh({2}), {.timeoutSeconds = 0.1});
  TestDevice on;
  PeerTransport transport(*on.driver, host);
  auto collective = transport.prepare(0, rowOf(on.allocate(64), 4, "x"));
  expectOk(collective.status());
  CommTimes times;
  absl::Status status = (*collective)->enqueue(on.stream, times);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status.message().find("rank 1 did not arrive at all_reduce \"x\""),
            0u)
      << status;
}

} // namespace
} // namespace meshwork::runtime::cuda::test
