// Collectives by NCCL, between threads that have a device each: the cases of
// CollectiveShapesTest, what is left to NCCL's own collectives, graphs.
//
// Tolerance: NCCL's order of f32 sums is its own. A sum of N values below M is
// off by at most (N - 1) roundings of a partial sum below N * M, each 2^-24 of
// it, in either order. All else must be the same bits.
#include "meshwork/Plan/Frame.h"
#include "runtime/comm/InProcess.h"
#include "runtime/device/cuda/NcclMoves.h"
#include "runtime/device/cuda/NcclTransport.h"
#include "test/Runtime/cuda/AsRanks.h"
#include "test/Runtime/cuda/DeviceCase.h"
#include "test/Runtime/cuda/NcclRequests.h"
#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>

namespace meshwork::runtime::cuda::test {
namespace {
using runtime::test::CollectiveCase;
using Kind = plan::CollectiveKind;

double toleranceOf(const CollectiveCase &one) {
  double n = one.group;
  return 2 * (n - 1) * n * CollectiveCase::maxValue * std::ldexp(1.0, -24);
}

/// One rank's part: its transport, its case.
void runRank(CollectiveCase &one, InProcessTransport &host, uint32_t rank) {
  TestDevice on(rank);
  RankOfCase mine(on, one, rank);
  CollectiveRequest request = mine.onDevice();
  auto transport = NcclTransport::create(
      {*on.driver, host, host.ranks(), rank, {request}, 60});
  expectOk(transport.status());
  auto collective = (*transport)->prepare(rank, request);
  expectOk(collective.status());
  CommTimes times;
  for (int round = 0; round < (one.inPlace ? 1 : 2); ++round)
    expectOk((*collective)->enqueue(on.stream, times));
  on.synchronize();
  expectOk((*transport)->check());
  mine.copyBack();
}

class NcclShapes : public ::testing::TestWithParam<Kind> {};

TEST_P(NcclShapes, AreWhatLoopsGive) {
  bool wasNative = false, wasMessages = false;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    CollectiveCase one(GetParam(), seed, {{2}, {3}, {4}, {2, 2}, {2, 3}});
    NcclCall call = callOf(one.request(0), one.group);
    wasNative |= call != NcclCall::messages;
    wasMessages |= call == NcclCall::messages;
    InProcessTransport host(Mesh(one.mesh), {});
    asRanks(one.ranks, [&](uint32_t rank) { runRank(one, host, rank); });
    double tolerance = call == NcclCall::messages ? 0 : toleranceOf(one);
    for (uint32_t rank = 0; rank < one.ranks; ++rank)
      ASSERT_EQ(one.firstDifference(rank, tolerance), "")
          << "seed " << seed << ", " << one.describe();
  }
  EXPECT_TRUE(wasMessages);
  EXPECT_EQ(wasNative,
            GetParam() != Kind::all_to_all && GetParam() != Kind::permute);
}

INSTANTIATE_TEST_SUITE_P(Collectives, NcclShapes,
                         ::testing::Values(Kind::all_reduce, Kind::all_gather,
                                           Kind::reduce_scatter,
                                           Kind::all_to_all, Kind::permute),
                         [](const auto &info) {
                           return std::string(
                               plan::EnumNameCollectiveKind(info.param));
                         });

TEST(NcclMoves, LeavesToNcclWhatItDoes) {
  using plan::DType;
  auto call = [](Kind kind, DType type, std::vector<int64_t> src,
                 std::vector<int64_t> dst, size_t dim = 0, uint32_t ranks = 4) {
    return callOf(requestFor(kind, type, src, dst, dim), ranks);
  };
  constexpr NcclCall messages = NcclCall::messages;
  EXPECT_EQ(call(Kind::all_reduce, DType::f32, {8, 3}, {8, 3}),
            NcclCall::allReduce);
  // NCCL rounds bf16 after each step.
  EXPECT_EQ(call(Kind::all_reduce, DType::bf16, {8}, {8}), messages);
  EXPECT_EQ(call(Kind::all_reduce, DType::bf16, {8}, {8}, 0, 2),
            NcclCall::allReduce);
  CollectiveRequest free = requestFor(Kind::all_reduce, DType::bf16, {8}, {8});
  free.anyOrder = true;
  EXPECT_EQ(callOf(free, 4), NcclCall::allReduce);
  free = requestFor(Kind::reduce_scatter, DType::bf16, {8, 3}, {2, 3});
  EXPECT_EQ(callOf(free, 4), messages);
  free.anyOrder = true;
  EXPECT_EQ(callOf(free, 4), NcclCall::reduceScatter);
  EXPECT_EQ(call(Kind::all_gather, DType::bf16, {2, 3}, {8, 3}),
            NcclCall::allGather);
  EXPECT_EQ(call(Kind::all_gather, DType::bf16, {3, 2}, {3, 8}, 1), messages);
  EXPECT_EQ(call(Kind::all_gather, DType::bf16, {1, 2}, {1, 8}, 1),
            NcclCall::allGather);
  // The last block is short, or there is none.
  EXPECT_EQ(call(Kind::all_gather, DType::f32, {2}, {7}), messages);
  EXPECT_EQ(call(Kind::all_gather, DType::f32, {1}, {3}), messages);
  EXPECT_EQ(call(Kind::reduce_scatter, DType::f32, {8, 3}, {2, 3}),
            NcclCall::reduceScatter);
  EXPECT_EQ(call(Kind::reduce_scatter, DType::f32, {7, 3}, {2, 3}), messages);
  EXPECT_EQ(call(Kind::reduce_scatter, DType::f32, {3, 8}, {3, 2}, 1),
            messages);
}

/// What is dense travels from and to where it is.
TEST(NcclMoves, PackOnlyWhatIsStrided) {
  CollectiveRequest request =
      requestFor(Kind::all_to_all, plan::DType::f32, {2, 8}, {4, 4}, 0);
  request.parts[0].toDim = 1;
  NcclMessages messages = messagesOf(request, 0, 2, 0);
  ASSERT_EQ(messages.swap.size(), 2u);
  EXPECT_FALSE(messages.pack.isEmpty()); // columns of src
  EXPECT_EQ(messages.stagingBytes, 256u);
  EXPECT_EQ(messages.swap[1].address, 2u * 4 * 4); // rows of dst
  request = requestFor(Kind::permute, plan::DType::f32, {4, 4}, {4, 4});
  request.sources = {1, 0};
  messages = messagesOf(request, 0, 2, 0);
  EXPECT_TRUE(messages.pack.isEmpty());
  EXPECT_TRUE(messages.unpack.isEmpty());
  EXPECT_EQ(messages.stagingBytes, 0u);
}

/// A rank without a source posts no receive: it fills its result with zeros.
TEST(NcclMoves, ReceiveNothingWithoutASource) {
  CollectiveRequest request =
      requestFor(Kind::permute, plan::DType::bf16, {4, 4}, {4, 4});
  request.sources = {plan::noSource, 0, 0};
  for (uint32_t index : {0, 1, 2}) {
    NcclMessages messages = messagesOf(request, index, 3, 0);
    auto count = [&](bool isSent) {
      return std::count_if(
          messages.swap.begin(), messages.swap.end(),
          [&](const NcclMessage &message) { return message.isSent == isSent; });
    };
    EXPECT_EQ(count(true), index == 0 ? 2 : 0) << index;
    EXPECT_EQ(count(false), index == 0 ? 0 : 1) << index;
    EXPECT_EQ(messages.unpack.isEmpty(), index != 0) << index;
    EXPECT_TRUE(messages.pack.isEmpty()) << index;
  }
}

/// Two channels and two meshes of ranks, each a communicator of its own, and
/// graphs that repeat them.
TEST(Nccl, CapturesAndRepeats) {
  InProcessTransport host(Mesh({2, 2}), {});
  asRanks(4, [&](uint32_t rank) {
    TestDevice on(rank);
    const Driver &driver = *on.driver;
    DevicePtr data = on.allocate(64);
    on.write(data, std::vector<float>(4, static_cast<float>(rank + 1)));
    CollectiveRequest rows = sumOf(data), columns = rows;
    columns.axes = {1};
    columns.channel = 3;
    auto transport = NcclTransport::create(
        {driver, host, host.ranks(), rank, {columns, rows}, 60});
    expectOk(transport.status());
    auto first = (*transport)->prepare(rank, rows);
    auto second = (*transport)->prepare(rank, columns);
    expectOk(first.status());
    expectOk(second.status());
    ASSERT_TRUE((*first)->canBeCaptured());
    CommTimes times;
    on.expect(driver.streamBeginCapture(on.stream, captureThreadLocal),
              "begin");
    expectOk((*first)->enqueue(on.stream, times));
    expectOk((*second)->enqueue(on.stream, times));
    Graph graph = nullptr;
    GraphExec exec = nullptr;
    on.expect(driver.streamEndCapture(on.stream, &graph), "end");
    on.expect(driver.graphInstantiate(&exec, graph, 0), "instantiate");
    for (int round = 0; round < 3; ++round)
      on.expect(driver.graphLaunch(exec, on.stream), "launch");
    // 10, then every sum is four times as large.
    EXPECT_EQ(on.read<float>(data, 4), std::vector<float>(4, 160));
    (void)driver.graphExecDestroy(exec);
    (void)driver.graphDestroy(graph);
  });
}

/// Memory that a communicator was not told of, beside memory that it knows, is
/// refused: NCCL would do anything.
TEST(Nccl, GivesCommunicatorsOnlyMemoryThatTheyKnow) {
  InProcessTransport host(Mesh({2}), {});
  asRanks(2, [&](uint32_t rank) {
    TestDevice on(rank);
    NcclSetup setup{*on.driver, host, host.ranks(), rank, {sumOf(0)}, 60};
    setup.registers = true;
    auto transport = NcclTransport::create(setup);
    expectOk(transport.status());
    auto memory = (*transport)->allocate(64);
    expectOk(memory.status());
    ASSERT_TRUE(*memory);
    CommTimes times;
    auto known = (*transport)->prepare(rank, sumOf((*memory)->address()));
    expectOk(known.status());
    on.write((*memory)->address(), std::vector<float>(4, 1.0f));
    expectOk((*known)->enqueue(on.stream, times));
    on.synchronize();
    EXPECT_EQ(on.read<float>((*memory)->address(), 4),
              std::vector<float>(4, 2));
    auto other = (*transport)->prepare(rank, sumOf(on.allocate(64)));
    expectOk(other.status());
    EXPECT_THAT(std::string((*other)->enqueue(on.stream, times).message()),
                ::testing::HasSubstr("knows other memory, and not this"));
  });
}

/// What a plan leaves to NCCL is summed as NCCL does: 256 + 1 + 1 + 1 in bf16,
/// which has 256 and 258, is 259 rounded once, 260. Added one by one to the
/// 256, which the stand-in begins with, it stays 256.
TEST(Nccl, SumsBf16ItselfWhereThePlanLeavesTheOrder) {
  for (bool anyOrder : {false, true}) {
    InProcessTransport host(Mesh({4}), {});
    asRanks(4, [&](uint32_t rank) {
      TestDevice on(rank);
      DevicePtr data = on.allocate(8);
      constexpr uint16_t one = 0x3f80, many = 0x4380; // 1 and 256
      on.write(data, std::vector<uint16_t>(4, rank == 3 ? many : one));
      CollectiveRequest request = sumOf(data);
      request.parts[0].src.dtype = request.parts[0].dst.dtype =
          plan::DType::bf16;
      request.anyOrder = anyOrder;
      auto transport = NcclTransport::create(
          {*on.driver, host, host.ranks(), rank, {request}, 60});
      expectOk(transport.status());
      auto sum = (*transport)->prepare(rank, request);
      expectOk(sum.status());
      CommTimes times;
      expectOk((*sum)->enqueue(on.stream, times));
      on.synchronize();
      constexpr uint16_t rounded = 0x4382; // 260
      EXPECT_EQ(on.read<uint16_t>(data, 4),
                std::vector<uint16_t>(4, anyOrder ? many : rounded));
    });
  }
}

} // namespace
} // namespace meshwork::runtime::cuda::test
