// Collectives by NCCL, between threads that have a device each: the cases of
// CollectiveShapesTest, what is left to NCCL's own collectives, graphs, and
// failures.
//
// Tolerance: NCCL's order of f32 sums is its own. A sum of N values below M is
// off by at most (N - 1) roundings of a partial sum below N * M, each 2^-24 of
// it, in either order. All else must be the same bits.
#include "absl/strings/escaping.h"
#include "runtime/comm/InProcess.h"
#include "runtime/device/cuda/Memory.h"
#include "runtime/device/cuda/NcclMoves.h"
#include "runtime/device/cuda/NcclTransport.h"
#include "test/Runtime/cuda/AsRanks.h"
#include "test/Runtime/cuda/DeviceCase.h"
#include <cmath>
#include <cstdlib>
#include <cstring>

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

CollectiveRequest requestFor(Kind kind, plan::DType dtype,
                             std::vector<int64_t> src, std::vector<int64_t> dst,
                             size_t dim = 0) {
  auto dense = [&](std::vector<int64_t> shape) {
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t i = shape.size(); i-- > 1;)
      strides[i - 1] = strides[i] * shape[i];
    return Strided{nullptr, dtype, std::move(shape), strides};
  };
  return {
      kind, plan::Reduction::sum, {0}, {{dense(src), dense(dst), dim}}, "x"};
}

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

/// Two channels and two meshes of ranks, each a communicator of its own, and
/// graphs that repeat them.
TEST(Nccl, CapturesAndRepeats) {
  InProcessTransport host(Mesh({2, 2}), {});
  asRanks(4, [&](uint32_t rank) {
    TestDevice on(rank);
    const Driver &driver = *on.driver;
    DevicePtr data = on.allocate(64);
    on.write(data, std::vector<float>(4, static_cast<float>(rank + 1)));
    CollectiveRequest rows =
        requestFor(Kind::all_reduce, plan::DType::f32, {4}, {4});
    rows.parts[0].src.data = rows.parts[0].dst.data =
        reinterpret_cast<std::byte *>(data);
    CollectiveRequest columns = rows;
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

TEST(Nccl, DoesNotWaitForeverForAPeer) {
  InProcessTransport host(Mesh({2}), {});
  asRanks(2, [&](uint32_t rank) {
    TestDevice on(rank);
    NcclSetup setup{*on.driver, host, host.ranks(), rank, {}, 0.2};
    if (rank == 0)
      setup.requests = {
          requestFor(Kind::all_reduce, plan::DType::f32, {4}, {4})};
    auto transport = NcclTransport::create(setup);
    if (rank == 1)
      return expectOk(transport.status());
    ASSERT_FALSE(transport.ok());
    EXPECT_EQ(transport.status().message(),
              "rank 1 did not arrive at making the communicator of channel 0, "
              "axes 0 within 0.2 s and waits for nobody: it computes, or is "
              "caught in a loop");
  });
}

/// A rank that fails later: what others have in streams ends, and they do not
/// wait for it in the end.
TEST(Nccl, IsCutOffWhenAPeerFails) {
  InProcessTransport host(Mesh({2}), {});
  asRanks(2, [&](uint32_t rank) {
    TestDevice on(rank);
    CollectiveRequest request =
        requestFor(Kind::all_reduce, plan::DType::f32, {4}, {4});
    DevicePtr data = on.allocate(64);
    request.parts[0].src.data = request.parts[0].dst.data =
        reinterpret_cast<std::byte *>(data);
    auto transport = NcclTransport::create(
        {*on.driver, host, host.ranks(), rank, {request}, 60});
    expectOk(transport.status());
    auto collective = (*transport)->prepare(rank, request);
    expectOk(collective.status());
    expectOk(host.agree(rank, 0, "both are connected").status());
    if (rank == 1)
      return host.abort(1, absl::InternalError("a kernel failed"));
    CommTimes times;
    absl::Status status = (*collective)->enqueue(on.stream, times);
    while (host.failure().ok())
      std::this_thread::yield();
    EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kAborted)
        << status;
    (*transport)->cutOff();
    on.synchronize();
    status = (*collective)->enqueue(on.stream, times);
    EXPECT_EQ(status.message(),
              "all_reduce \"x\" comes after channel 0, axes 0 "
              "was cut off");
  });
}

/// What one communicator has in a stream lies behind what another waits for.
TEST(Nccl, IsCutOffAsAWhole) {
  InProcessTransport host(Mesh({2}), {});
  asRanks(2, [&](uint32_t rank) {
    TestDevice on(rank);
    CollectiveRequest request =
        requestFor(Kind::all_reduce, plan::DType::f32, {4}, {4});
    DevicePtr data = on.allocate(64);
    request.parts[0].src.data = request.parts[0].dst.data =
        reinterpret_cast<std::byte *>(data);
    CollectiveRequest later = request;
    request.channel = 3; // cut off after the other one, were it one by one
    auto transport = NcclTransport::create(
        {*on.driver, host, host.ranks(), rank, {later, request}, 60});
    expectOk(transport.status());
    auto first = (*transport)->prepare(rank, request);
    auto second = (*transport)->prepare(rank, later);
    expectOk(first.status());
    expectOk(second.status());
    expectOk(host.agree(rank, 0, "both are connected").status());
    if (rank == 1)
      return host.abort(1, absl::InternalError("a kernel failed"));
    CommTimes times;
    (void)(*first)->enqueue(on.stream, times);
    (void)(*second)->enqueue(on.stream, times);
    while (host.failure().ok())
      std::this_thread::yield();
    (*transport)->cutOff();
    on.synchronize();
  });
}

/// The peer makes the communicator, and then does nothing.
TEST(Nccl, AFirstExchangeThatDoesNotEndIsCutOff) {
  InProcessTransport host(Mesh({2}), {});
  asRanks(2, [&](uint32_t rank) {
    TestDevice on(rank);
    CollectiveRequest request =
        requestFor(Kind::all_reduce, plan::DType::f32, {4}, {4});
    if (rank == 0) {
      auto transport = NcclTransport::create(
          {*on.driver, host, host.ranks(), rank, {request}, 0.5});
      EXPECT_EQ(transport.status().message(),
                "rank 1 did not arrive at the first exchange on channel 0, "
                "axes 0 within 0.5 s and waits for nobody: it computes, or is "
                "caught in a loop");
      return host.abort(0, transport.status());
    }
    auto texts = host.exchange(rank, "", "the exchange of NCCL's ids");
    expectOk(texts.status());
    std::string hex = (*texts)[0].substr((*texts)[0].rfind(' ') + 1, 256);
    nccl::UniqueId id;
    std::string bytes = absl::HexStringToBytes(hex);
    ASSERT_EQ(bytes.size(), sizeof(id));
    std::memcpy(id.bytes, bytes.data(), sizeof(id));
    auto library = NcclLibrary::open();
    expectOk(library.status());
    auto idle =
        NcclCommunicator::create(**library, {host, 60}, id, {0, 1}, 1, "idle");
    expectOk(idle.status());
    while (host.failure().ok())
      std::this_thread::yield();
  });
}

const plan::Plan &planWithoutKernels(flatbuffers::FlatBufferBuilder &builder) {
  constexpr std::string_view code =
      ".version 7.0\n.target sm_80\n.address_size 64\n";
  plan::PlanT plan;
  plan.images.push_back(std::make_unique<plan::ImageT>());
  plan.images[0]->arch = "sm_80";
  plan.images[0]->kind = plan::ImageKind::ptx;
  plan.images[0]->code.assign(code.begin(), code.end());
  plan.images[0]->code.push_back(0);
  builder.Finish(plan::Plan::Pack(builder, &plan));
  return *flatbuffers::GetRoot<plan::Plan>(builder.GetBufferPointer());
}

/// Copies that lie behind what a peer does not send.
TEST(Nccl, StagingDoesNotWaitForAPeerThatFailed) {
  InProcessTransport host(Mesh({2}), {});
  flatbuffers::FlatBufferBuilder builder;
  const plan::Plan &plan = planWithoutKernels(builder);
  asRanks(2, [&](uint32_t rank) {
    TestDevice on(rank);
    auto gpu = Gpu::open(*on.driver, static_cast<int>(rank), plan);
    expectOk(gpu.status());
    CollectiveRequest request =
        requestFor(Kind::all_reduce, plan::DType::f32, {4}, {4});
    DevicePtr data = on.allocate(64);
    request.parts[0].src.data = request.parts[0].dst.data =
        reinterpret_cast<std::byte *>(data);
    auto transport = NcclTransport::create(
        {*on.driver, host, host.ranks(), rank, {request}, 60});
    expectOk(transport.status());
    auto collective = (*transport)->prepare(rank, request);
    expectOk(collective.status());
    expectOk(host.agree(rank, 0, "both are connected").status());
    if (rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return host.abort(1, absl::InternalError("a kernel failed"));
    }
    auto queue = Queue::create(**gpu, {rank, host, **transport}, false);
    expectOk(queue.status());
    auto staging = Staging::create(**gpu, **queue);
    expectOk(staging.status());
    CommTimes times;
    expectOk((*collective)->enqueue((*queue)->stream(), times));
    const std::byte bytes[16] = {};
    absl::Status status;
    for (int copies = 0; status.ok() && copies < 10; ++copies)
      status = (*staging)->write(data, bytes);
    EXPECT_EQ(status.message(), "a kernel failed");
    (*transport)->cutOff();
  });
}

TEST(Nccl, TellsOfABrokenNetwork) {
  InProcessTransport host(Mesh({2}), {});
  asRanks(2, [&](uint32_t rank) {
    TestDevice on(rank);
    CollectiveRequest request =
        requestFor(Kind::all_reduce, plan::DType::f32, {4}, {4});
    auto transport = NcclTransport::create(
        {*on.driver, host, host.ranks(), rank, {request}, 60});
    expectOk(transport.status());
    expectOk((*transport)->check());
    expectOk(host.agree(rank, 0, "both are connected").status());
    if (rank == 0)
      ::setenv("MESHWORK_EMULATOR_NCCL_ERROR", "6", 1);
    expectOk(host.agree(rank, 0, "the network is broken").status());
    absl::Status status = (*transport)->check();
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
    EXPECT_EQ(status.message(),
              "channel 0, axes 0 failed: remote process exited or there was a "
              "network error (NCCL 6)");
    expectOk(host.agree(rank, 0, "both have seen it").status());
  });
  ::unsetenv("MESHWORK_EMULATOR_NCCL_ERROR");
}

} // namespace
} // namespace meshwork::runtime::cuda::test
