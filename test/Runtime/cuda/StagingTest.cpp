// Bytes on their way to a GPU that is late: the host goes ahead of it, and does
// not write over what has not left.
#include "runtime/comm/InProcess.h"
#include "runtime/device/cuda/TimingNumbers.h"
#include "runtime/machine/Clock.h"
#include "runtime/machine/Float8.h"
#include "test/Runtime/cuda/EmptyPlan.h"
#include "test/Runtime/cuda/TestDevice.h"
#include "test/Support/Emulator/Emulator.h"
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

namespace meshwork::runtime::cuda::test {
namespace {

class NoCollectives : public DeviceTransport {
  absl::StatusOr<std::unique_ptr<DeviceCollective>>
  prepare(uint32_t, CollectiveRequest) override {
    return absl::UnimplementedError("none");
  }
  absl::StatusOr<std::unique_ptr<DeviceTransfer>>
  prepareTransfer(uint32_t, PairRequest) override {
    return absl::UnimplementedError("none");
  }
  Waiting waiting(uint32_t) const override { return {}; }
};

/// A ring of 4 MiB, on a stream where each copy begins late.
class StagingTest : public ::testing::Test {
protected:
  StagingTest() : host(Mesh({1}), {}) {
    auto opened = Gpu::open(*on.driver, 0, planWithoutKernels(builder));
    expectOk(opened.status());
    gpu = *std::move(opened);
    auto made = Queue::create(*gpu, {0, host, &none}, false);
    expectOk(made.status());
    queue = *std::move(made);
    auto ring = Staging::create(*gpu, *queue);
    expectOk(ring.status());
    staging = *std::move(ring);
  }
  ~StagingTest() override { expectOk(queue->finish()); }

  TestDevice on;
  InProcessTransport host;
  NoCollectives none;
  flatbuffers::FlatBufferBuilder builder;
  std::unique_ptr<Gpu> gpu;
  std::unique_ptr<Queue> queue;
  std::unique_ptr<Staging> staging;
};

TEST_F(StagingTest, ArrivesAsItWasAcrossManyRounds) {
  std::mt19937 random(1);
  const size_t largest = size_t{5} << 19; // longer than a piece
  std::vector<uint32_t> sizes = {4,       4,  4,  largest,
                                 1 << 20, 64, 12, (7 << 20) + 4};
  while (sizes.size() < 200)
    sizes.push_back(4 *
                    (1 + random() % (sizes.size() % 9 == 0 ? 300000 : 200)));
  std::vector<std::vector<uint32_t>> sent;
  std::vector<DevicePtr> places;
  for (uint32_t size : sizes) {
    sent.emplace_back(size / 4);
    for (uint32_t &value : sent.back())
      value = random();
    places.push_back(on.allocate(size));
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<uint32_t> given = sent[i]; // goes when `write` has returned
    expectOk(staging->write(
        places[i],
        {reinterpret_cast<const std::byte *>(given.data()), given.size() * 4}));
  }
  DevicePtr aside = on.allocate(4);
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<uint32_t> found(sent[i].size());
    // What travels the other way moves on in the ring.
    expectOk(staging->write(
        aside, {reinterpret_cast<const std::byte *>(sent[i].data()), 4}));
    expectOk(
        staging->read(places[i], {reinterpret_cast<std::byte *>(found.data()),
                                  found.size() * 4}));
    ASSERT_TRUE(found == sent[i])
        << "write " << i << ", " << sizes[i] << " bytes";
  }
}

/// What a step's inputs take does not hold the host up: nothing that the stream
/// has still to do is waited for.
TEST_F(StagingTest, LetsTheHostGoAhead) {
  struct Gate {
    std::atomic<bool> open = false, gaveUp = false;
  } gate;
  expectOk(queue->finish());
  auto wait = [](void *of) {
    Gate &gate = *static_cast<Gate *>(of);
    int64_t begin = steadyNs();
    while (!gate.open && !gate.gaveUp) {
      std::this_thread::yield();
      gate.gaveUp = steadyNs() - begin > 100'000'000'000;
    }
  };
  ASSERT_EQ(meshworkEmulatorEnqueue(queue->stream(), wait, &gate, nullptr), 0);
  DevicePtr place = on.allocate(1 << 16);
  std::vector<std::byte> tokens(1 << 16);
  for (int copies = 0; copies < 60; ++copies)
    expectOk(staging->write(place, tokens));
  gate.open = true;
  expectOk(queue->finish()); // before the gate goes
  EXPECT_FALSE(gate.gaveUp);
}

/// Finite however they are read, and not the same in each half.
TEST_F(StagingTest, NumbersForTimingAreSmallInEveryFormat) {
  constexpr size_t bytes = 5'000'003;
  DevicePtr place = on.allocate(bytes + 1);
  on.write(place + bytes, std::vector<uint8_t>{7});
  expectOk(fillForTiming(*on.driver, *queue, *staging, place, bytes));
  expectOk(queue->finish());
  std::vector<uint8_t> found = on.read<uint8_t>(place, bytes + 1);
  EXPECT_EQ(found.back(), 7);
  size_t changes = 0;
  for (size_t i = 0; i + 4 <= bytes; i += 4) {
    uint32_t word = 0;
    std::memcpy(&word, &found[i], 4);
    ASSERT_LT(std::fabs(std::bit_cast<float>(word)), 2) << i;
    ASSERT_GT(std::fabs(std::bit_cast<float>(word)), 0.1) << i;
    ASSERT_LT(std::fabs(std::bit_cast<float>(word << 16)), 2) << i;
    changes += i >= 4 && std::memcmp(&found[i], &found[i - 4], 4) != 0;
    for (size_t byte = i; byte < i + 4; ++byte)
      for (plan::DType type : {plan::DType::e4m3, plan::DType::e5m2})
        ASSERT_LT(std::fabs(fromFloat8(type, found[byte])), 2) << byte;
  }
  EXPECT_GT(changes, bytes / 4 - 100);
}

} // namespace
} // namespace meshwork::runtime::cuda::test
