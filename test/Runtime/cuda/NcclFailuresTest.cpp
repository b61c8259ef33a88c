// NCCL between threads that have a device each, when a peer fails, does not
// come or is cut off: nobody waits forever, and what a rank says names the
// cause.
#include "absl/strings/escaping.h"
#include "runtime/comm/InProcess.h"
#include "runtime/device/cuda/Memory.h"
#include "runtime/device/cuda/NcclTransport.h"
#include "test/Runtime/cuda/AsRanks.h"
#include "test/Runtime/cuda/EmptyPlan.h"
#include "test/Runtime/cuda/NcclRequests.h"
#include <atomic>
#include <cstdlib>
#include <cstring>

namespace meshwork::runtime::cuda::test {
namespace {

/// A rank that has met its peers: a sum on each of `channels`, prepared.
struct ConnectedRank {
  ConnectedRank(InProcessTransport &host, uint32_t rank,
                std::vector<uint32_t> channels)
      : on(rank), data(on.allocate(64)) {
    std::vector<CollectiveRequest> requests(channels.size(), sumOf(data));
    for (size_t i = 0; i < channels.size(); ++i)
      requests[i].channel = channels[i];
    auto made = NcclTransport::create(
        {*on.driver, host, host.ranks(), rank, requests, 60});
    expectOk(made.status());
    transport = *std::move(made);
    for (const CollectiveRequest &request : requests) {
      auto sum = transport->prepare(rank, request);
      expectOk(sum.status());
      sums.push_back(*std::move(sum));
    }
    expectOk(host.agree(rank, 0, "both are connected").status());
  }

  absl::Status enqueue(size_t sum, Stream stream) {
    CommTimes times;
    return sums[sum]->enqueue(stream, times);
  }

  TestDevice on;
  DevicePtr data;
  std::unique_ptr<NcclTransport> transport;
  std::vector<std::unique_ptr<DeviceCollective>> sums;
};

TEST(Nccl, DoesNotWaitForeverForAPeer) {
  InProcessTransport host(Mesh({2}), {});
  asRanks(2, [&](uint32_t rank) {
    TestDevice on(rank);
    NcclSetup setup{*on.driver, host, host.ranks(), rank, {}, 0.2};
    if (rank == 0)
      setup.requests = {sumOf(0)};
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
    ConnectedRank mine(host, rank, {0});
    if (rank == 1)
      return host.abort(1, absl::InternalError("a kernel failed"));
    absl::Status status = mine.enqueue(0, mine.on.stream);
    while (host.failure().ok())
      std::this_thread::yield();
    EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kAborted)
        << status;
    mine.transport->cutOff();
    mine.on.synchronize();
    EXPECT_EQ(mine.enqueue(0, mine.on.stream).message(),
              "all_reduce \"x\" comes after channel 0, axes 0 "
              "was cut off");
  });
}

/// What one communicator has in a stream lies behind what another waits for:
/// channel 3, cut off after channel 0 were it one by one.
TEST(Nccl, IsCutOffAsAWhole) {
  InProcessTransport host(Mesh({2}), {});
  asRanks(2, [&](uint32_t rank) {
    ConnectedRank mine(host, rank, {0, 3});
    if (rank == 1)
      return host.abort(1, absl::InternalError("a kernel failed"));
    (void)mine.enqueue(1, mine.on.stream);
    (void)mine.enqueue(0, mine.on.stream);
    while (host.failure().ok())
      std::this_thread::yield();
    mine.transport->cutOff();
    mine.on.synchronize();
  });
}

/// The peer makes the communicator, and then does nothing.
TEST(Nccl, AFirstExchangeThatDoesNotEndIsCutOff) {
  InProcessTransport host(Mesh({2}), {});
  asRanks(2, [&](uint32_t rank) {
    TestDevice on(rank);
    if (rank == 0) {
      auto transport = NcclTransport::create(
          {*on.driver, host, host.ranks(), rank, {sumOf(0)}, 0.5});
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

/// Copies that lie behind what a peer does not send.
TEST(Nccl, StagingDoesNotWaitForAPeerThatFailed) {
  InProcessTransport host(Mesh({2}), {});
  flatbuffers::FlatBufferBuilder builder;
  const plan::Plan &plan = planWithoutKernels(builder);
  std::atomic<bool> isEnqueued = false;
  asRanks(2, [&](uint32_t rank) {
    ConnectedRank mine(host, rank, {0});
    if (rank == 1) {
      while (!isEnqueued)
        std::this_thread::yield();
      return host.abort(1, absl::InternalError("a kernel failed"));
    }
    auto gpu = Gpu::open(*mine.on.driver, static_cast<int>(rank), plan);
    expectOk(gpu.status());
    auto queue =
        Queue::create(**gpu, {rank, host, mine.transport.get()}, false);
    expectOk(queue.status());
    auto staging = Staging::create(**gpu, **queue);
    expectOk(staging.status());
    expectOk(mine.enqueue(0, (*queue)->stream()));
    isEnqueued = true;
    const std::byte bytes[16] = {};
    absl::Status status;
    for (int copies = 0; status.ok() && copies < 1000; ++copies)
      status = (*staging)->write(mine.data, bytes);
    EXPECT_EQ(status.message(), "a kernel failed");
    mine.transport->cutOff();
  });
}

TEST(Nccl, TellsOfABrokenNetwork) {
  InProcessTransport host(Mesh({2}), {});
  asRanks(2, [&](uint32_t rank) {
    ConnectedRank mine(host, rank, {0});
    expectOk(mine.transport->check());
    expectOk(host.agree(rank, 0, "both have checked").status());
    if (rank == 0)
      ::setenv("MESHWORK_EMULATOR_NCCL_ERROR", "6", 1);
    expectOk(host.agree(rank, 0, "the network is broken").status());
    absl::Status status = mine.transport->check();
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
