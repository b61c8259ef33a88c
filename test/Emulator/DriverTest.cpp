// Devices, memory, streams, events, graphs. Two devices of 1 MiB, and a random
// delay before each piece of work.
#include "test/Emulator/DriverCase.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace meshwork::emulator {
namespace {

TEST_F(Driver, DescribesItsDevices) {
  int count = 0, value = 0;
  EXPECT_EQ(api().deviceGetCount(&count), result::success);
  EXPECT_EQ(count, 2);
  char name[64];
  EXPECT_EQ(api().deviceGetName(name, 64, 1), result::success);
  EXPECT_STREQ(name, "Meshwork emulator");
  EXPECT_EQ(api().deviceGetAttribute(&value, attribute::computeMajor, 0), 0);
  const char *set = std::getenv("MESHWORK_EMULATOR_CC");
  EXPECT_EQ(value, set ? std::atoi(set) : 8);
  EXPECT_EQ(api().deviceGetAttribute(&value, attribute::maxSharedBytesOptIn, 0),
            result::success);
  EXPECT_EQ(value, (set && set[0] == '9' ? 227 : 163) << 10);
  EXPECT_NE(api().deviceGetAttribute(&value, 9999, 0), result::success);
  const char *text = nullptr;
  EXPECT_EQ(api().getErrorName(result::notReady, &text), result::success);
  EXPECT_STREQ(text, "CUDA_ERROR_NOT_READY");
}

TEST_F(Driver, MemoryIsCountedAndFreshMemoryIsNaN) {
  size_t free = 0, total = 0;
  EXPECT_EQ(api().memoryGetInfo(&free, &total), result::success);
  EXPECT_EQ(total, 1u << 20);
  EXPECT_EQ(free, total - 256);
  DevicePtr more = 0;
  EXPECT_EQ(api().memoryAllocate(&more, total), result::outOfMemory);
  EXPECT_EQ(read(first), all(~0u));
  more = allocate(1000);
  EXPECT_EQ(more % 256, 0u);
  EXPECT_EQ(api().check(more, 1000), 1);
  EXPECT_EQ(api().check(more, 1001), 0);
  EXPECT_EQ(api().check(more - 1, 1), 0);
  EXPECT_EQ(api().memoryFree(more), result::success);
  EXPECT_EQ(api().check(more, 1), 0);
  EXPECT_EQ(api().memoryFree(more), result::invalidValue);
}

TEST_F(Driver, WorkOfAStreamRunsInOrderAndLater) {
  std::vector<uint32_t> begin(64, 7), end(64);
  ASSERT_EQ(api().copyToDevice(memory, begin.data(), 256, first), 0);
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(add(first), result::success);
  ASSERT_EQ(api().copyToHost(end.data(), memory, 256, first), 0);
  ASSERT_EQ(api().streamSynchronize(first), result::success);
  EXPECT_EQ(end, all(27));
  // The host's bytes are read when the copy runs.
  ASSERT_EQ(slow(first), result::success);
  ASSERT_EQ(api().copyToDevice(memory, begin.data(), 256, first), 0);
  EXPECT_EQ(api().streamQuery(first), result::notReady);
  std::fill(begin.begin(), begin.end(), 9);
  EXPECT_EQ(read(first), all(9));
  EXPECT_EQ(api().streamQuery(first), result::success);
}

TEST_F(Driver, EventsOrderStreams) {
  Event done = event();
  for (int round = 0; round < 10; ++round) {
    ASSERT_EQ(fill(first, 0), result::success);
    ASSERT_EQ(slow(first), result::success);
    ASSERT_EQ(add(first), result::success);
    ASSERT_EQ(api().eventRecord(done, first), result::success);
    ASSERT_EQ(api().streamWaitEvent(second, done, 0), result::success);
    ASSERT_EQ(slow(second), result::success);
    EXPECT_EQ(read(second)[0], 10u);
    EXPECT_EQ(api().eventQuery(done), result::success);
  }
}

TEST_F(Driver, WithoutAnEventStreamsAreNotOrdered) {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "it is a race, and is meant to be";
#endif
#endif
  ASSERT_EQ(fill(first, 0), result::success);
  ASSERT_EQ(api().streamSynchronize(first), result::success);
  ASSERT_EQ(slow(first), result::success);
  ASSERT_EQ(add(first), result::success);
  EXPECT_EQ(read(second), all(0)); // too early
  EXPECT_EQ(read(first), all(1));
}

TEST_F(Driver, EventsTakeTime) {
  Event begin = event(0), end = event(0), untimed = event();
  float ms = -1;
  EXPECT_EQ(api().eventElapsedMs(&ms, begin, end), result::invalidHandle);
  ASSERT_EQ(api().eventRecord(begin, first), result::success);
  ASSERT_EQ(slow(first), result::success);
  ASSERT_EQ(api().eventRecord(end, first), result::success);
  ASSERT_EQ(api().eventRecord(untimed, first), result::success);
  EXPECT_EQ(api().eventQuery(end), result::notReady);
  EXPECT_EQ(api().eventElapsedMs(&ms, begin, end), result::notReady);
  ASSERT_EQ(api().eventSynchronize(end), result::success);
  EXPECT_EQ(api().eventElapsedMs(&ms, begin, end), result::success);
  EXPECT_GT(ms, 0.1f);
  ASSERT_EQ(api().eventSynchronize(untimed), result::success);
  EXPECT_EQ(api().eventElapsedMs(&ms, begin, untimed), result::invalidHandle);
}

/// first: fill, fork; second: slow; first: joins, add.
TEST_F(Driver, GraphsKeepTheOrderOfTwoStreams) {
  Event fork = event(), join = event();
  Graph graph = nullptr;
  GraphExec exec = nullptr;
  ASSERT_EQ(api().streamBeginCapture(first, captureThreadLocal), 0);
  ASSERT_EQ(add(first), result::success);
  ASSERT_EQ(api().eventRecord(fork, first), result::success);
  ASSERT_EQ(api().streamWaitEvent(second, fork, 0), result::success);
  ASSERT_EQ(slow(second), result::success);
  ASSERT_EQ(api().eventRecord(join, second), result::success);
  ASSERT_EQ(api().streamWaitEvent(first, join, 0), result::success);
  ASSERT_EQ(add(first), result::success);
  ASSERT_EQ(api().streamEndCapture(first, &graph), result::success);
  ASSERT_EQ(api().graphInstantiate(&exec, graph, 0), result::success);
  EXPECT_EQ(api().graphDestroy(graph), result::success);
  // Nothing has run yet, and parameters were copied.
  EXPECT_EQ(read(first), all(~0u));
  ASSERT_EQ(fill(first, 0), result::success);
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(api().graphLaunch(exec, first), result::success);
  EXPECT_EQ(read(first)[0], 1221u); // ((0+1)*10+1 +1)*10+1 ...
  EXPECT_EQ(read(first)[1], 6u);
  EXPECT_EQ(api().graphExecDestroy(exec), result::success);
  EXPECT_EQ(api().graphLaunch(exec, first), result::invalidHandle);
  // Both streams run again.
  EXPECT_EQ(add(second), result::success);
  EXPECT_EQ(read(second)[1], 7u);
}

TEST_F(Driver, ACaptureThatIsNotJoinedFails) {
  Event fork = event();
  Graph graph = nullptr;
  ASSERT_EQ(api().streamBeginCapture(first, captureThreadLocal), 0);
  ASSERT_EQ(add(first), result::success);
  ASSERT_EQ(api().eventRecord(fork, first), result::success);
  ASSERT_EQ(api().streamWaitEvent(second, fork, 0), result::success);
  ASSERT_EQ(add(second), result::success);
  EXPECT_EQ(api().streamEndCapture(second, &graph), 903);
  EXPECT_EQ(api().streamEndCapture(first, &graph), 901);
  ASSERT_EQ(api().streamBeginCapture(first, captureThreadLocal), 0);
  ASSERT_EQ(api().eventRecord(fork, first), result::success);
  ASSERT_EQ(api().streamWaitEvent(second, fork, 0), result::success);
  ASSERT_EQ(add(second), result::success);
  EXPECT_EQ(api().streamEndCapture(first, &graph), 904);
  EXPECT_EQ(graph, nullptr);
}

TEST_F(Driver, WhatMustNotHappenWhileCapturing) {
  Graph graph = nullptr;
  DevicePtr more = 0;
  auto captured = [&](auto act) {
    EXPECT_EQ(api().streamBeginCapture(first, captureThreadLocal), 0);
    Result found = act();
    EXPECT_EQ(api().streamEndCapture(first, &graph), 901);
    return found;
  };
  EXPECT_EQ(captured([&] { return api().streamSynchronize(first); }), 900);
  EXPECT_EQ(captured([&] { return api().streamQuery(first); }), 900);
  EXPECT_EQ(captured([&] { return api().memoryAllocate(&more, 8); }), 900);
  EXPECT_EQ(captured([&] {
              Event outside = event();
              api().eventRecord(outside, second);
              return api().streamWaitEvent(first, outside, 0);
            }),
            905);
  Event inside = event();
  ASSERT_EQ(api().streamBeginCapture(first, captureThreadLocal), 0);
  ASSERT_EQ(api().eventRecord(inside, first), result::success);
  EXPECT_EQ(api().eventQuery(inside), 907);
  EXPECT_EQ(api().eventSynchronize(inside), 907);
  // Another stream is free meanwhile.
  EXPECT_EQ(api().streamSynchronize(second), result::success);
  // Another thread may allocate, but not end the capture.
  std::thread([&] {
    api().contextSetCurrent(context);
    EXPECT_EQ(api().memoryAllocate(&more, 8), result::success);
    EXPECT_EQ(api().streamEndCapture(first, &graph), 908);
  }).join();
  EXPECT_EQ(api().streamEndCapture(first, &graph), result::success);
  EXPECT_EQ(api().graphDestroy(graph), result::success);
}

} // namespace
} // namespace meshwork::emulator

int main(int argc, char **argv) {
  setenv("MESHWORK_EMULATOR_DEVICES", "2", 1);
  setenv("MESHWORK_EMULATOR_MEMORY", "1048576", 1);
  setenv("MESHWORK_EMULATOR_JITTER_US", "300", 1);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
