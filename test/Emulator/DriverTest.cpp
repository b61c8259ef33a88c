// libcuda.so.1 as programs see it: opened at run time, called by its symbols.
// Two devices of 1 MiB, and a random delay before each piece of work.
#include "runtime/device/cuda/DriverApi.h"
#include "test/Emulator/Emulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <thread>
#include <vector>

namespace meshwork::emulator {
namespace {
using namespace runtime::cuda;

struct Api {
#define MESHWORK_MEMBER(member, symbol, ...) Result (*member)(__VA_ARGS__);
  MESHWORK_CUDA_DRIVER_FUNCTIONS(MESHWORK_MEMBER)
#undef MESHWORK_MEMBER
  decltype(&meshworkEmulatorEnqueue) enqueue;
  decltype(&meshworkEmulatorCheck) check;
  decltype(&meshworkEmulatorFail) fail;
};
template <class F> void find(void *library, const char *name, F *&function) {
  function = reinterpret_cast<F *>(dlsym(library, name));
  ASSERT_TRUE(function) << name;
}
Api open() {
  void *library = dlopen(EMULATOR_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  EXPECT_TRUE(library) << dlerror();
  Api made{};
#define MESHWORK_FIND(member, symbol, ...) find(library, #symbol, made.member);
  MESHWORK_CUDA_DRIVER_FUNCTIONS(MESHWORK_FIND)
#undef MESHWORK_FIND
  find(library, "meshworkEmulatorEnqueue", made.enqueue);
  find(library, "meshworkEmulatorCheck", made.check);
  find(library, "meshworkEmulatorFail", made.fail);
  return made;
}
const Api &api() {
  static const Api all = open();
  return all;
}

// add(to, n): to[i] += 1. slow(to): to[0] *= 10, after a while.
// bad(): writes at address 16. big(to): has shared memory.
const char *const code = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 to, .param .u32 n)
{
  .reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .pred %p<2>;
  ld.param.b64 %rd1, [to]; ld.param.b32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r2, %r2, %r3, %r4; setp.ge.u32 %p1, %r2, %r1; @%p1 ret;
  mad.wide.u32 %rd2, %r2, 4, %rd1; ld.global.u32 %r5, [%rd2];
  add.u32 %r5, %r5, 1; st.global.u32 [%rd2], %r5; ret;
}
.visible .entry slow(.param .u64 to)
{
  .reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .pred %p<2>;
  ld.param.b64 %rd1, [to]; mov.u32 %r1, 0;
  LOOP: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 300000; @%p1 bra LOOP;
  ld.global.u32 %r2, [%rd1]; mul.lo.u32 %r2, %r2, 10; st.global.u32 [%rd1], %r2; ret;
}
.visible .entry bad() { st.global.u32 [16], 1; ret; }
.visible .entry big(.param .u64 to)
{
  .shared .align 4 .b8 fixed[1024]; .reg .b64 %rd<2>;
  ld.param.b64 %rd1, [to]; red.shared.add.u32 [fixed], 1; ret;
}
)";

class Driver : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(api().init(0), result::success);
    ASSERT_EQ(api().primaryContextRetain(&context, 0), result::success);
    ASSERT_EQ(api().contextSetCurrent(context), result::success);
    ASSERT_EQ(api().moduleLoad(&module, code, 0, nullptr, nullptr),
              result::success);
    first = stream();
    second = stream();
    memory = allocate(64 * 4);
    addFunction = function("add");
  }
  void TearDown() override {
    api().contextSetCurrent(context);
    api().memoryFree(memory);
    // Ends the context, and a sticky error with it.
    api().primaryContextRelease(0);
    api().contextSetCurrent(nullptr);
  }
  Stream stream() {
    Stream made = nullptr;
    EXPECT_EQ(api().streamCreate(&made, streamNonBlocking, 0), result::success);
    return made;
  }
  Event event(unsigned flags = eventDisableTiming) {
    Event made = nullptr;
    EXPECT_EQ(api().eventCreate(&made, flags), result::success);
    return made;
  }
  DevicePtr allocate(size_t bytes) {
    DevicePtr made = 0;
    EXPECT_EQ(api().memoryAllocate(&made, bytes), result::success);
    return made;
  }
  Function function(const char *name) {
    Function found = nullptr;
    EXPECT_EQ(api().moduleGetFunction(&found, module, name), result::success);
    return found;
  }
  Result add(Stream on, uint32_t count = 64) {
    void *parameters[] = {&memory, &count};
    return api().launchKernel(addFunction, 2, 1, 1, 32, 1, 1, 0, on, parameters,
                              nullptr);
  }
  Result slow(Stream on) {
    void *parameters[] = {&memory};
    return api().launchKernel(function("slow"), 1, 1, 1, 1, 1, 1, 0, on,
                              parameters, nullptr);
  }
  Result fill(Stream on, unsigned char value) {
    return api().fillBytes(memory, value, 64 * 4, on);
  }
  std::vector<uint32_t> read(Stream on) {
    std::vector<uint32_t> values(64);
    EXPECT_EQ(api().copyToHost(values.data(), memory, 64 * 4, on),
              result::success);
    EXPECT_EQ(api().streamSynchronize(on), result::success);
    return values;
  }
  std::vector<uint32_t> all(uint32_t value) {
    return std::vector<uint32_t>(64, value);
  }

  Context context = nullptr;
  Module module = nullptr;
  Function addFunction = nullptr;
  Stream first = nullptr, second = nullptr;
  DevicePtr memory = 0;
};

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

TEST_F(Driver, AFaultStays) {
  ::testing::internal::CaptureStderr();
  ASSERT_EQ(api().launchKernel(function("bad"), 1, 1, 1, 1, 1, 1, 0, first,
                               nullptr, nullptr),
            result::success);
  EXPECT_EQ(api().streamSynchronize(first), result::illegalAddress);
  std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("kernel bad: illegal write of 4 bytes at 0x10: an "
                      "allocation of 256 bytes on device 0 begins at"),
            std::string::npos)
      << said;
  EXPECT_EQ(add(second), result::illegalAddress);
  EXPECT_EQ(api().memoryAllocate(&memory, 8), result::illegalAddress);
}

TEST_F(Driver, CopiesAreChecked) {
  std::vector<char> bytes(512);
  ASSERT_EQ(api().copyToDevice(memory, bytes.data(), 257, first), 0);
  EXPECT_EQ(api().streamSynchronize(first), result::illegalAddress);
}
TEST_F(Driver, CopiesOverlapOnlyByMistake) {
  ASSERT_EQ(api().copyOnDevice(memory + 8, memory, 16, first), 0);
  EXPECT_EQ(api().streamSynchronize(first), result::launchFailed);
}
TEST_F(Driver, PinnedMemoryMustOutliveItsCopies) {
  void *host = nullptr;
  ASSERT_EQ(api().hostAllocate(&host, 256, 0), result::success);
  ASSERT_EQ(slow(first), result::success);
  ASSERT_EQ(api().copyToDevice(memory, host, 256, first), result::success);
  ASSERT_EQ(api().hostFree(host), result::success);
  EXPECT_EQ(api().streamSynchronize(first), result::illegalAddress);
}
TEST_F(Driver, WritesAroundAnAllocationAreFoundWhenItIsFreed) {
  std::memset(reinterpret_cast<void *>(memory + 256), 0, 4);
  EXPECT_EQ(api().memoryFree(memory), result::illegalAddress);
}

TEST_F(Driver, Modules) {
  Module other = nullptr;
  char log[200] = "";
  int options[] = {jitOption::errorLogBuffer, jitOption::errorLogBufferBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  auto load = [&](const char *text) {
    return api().moduleLoad(&other, text, 2, options, values);
  };
  EXPECT_EQ(load("\x7f"
                 "ELF..."),
            result::noBinaryForGpu);
  EXPECT_EQ(load(".version 8.0 .target sm_80 .entry k() { sub; }"),
            result::invalidPtx);
  EXPECT_NE(std::string(log).find("a type that is modelled is missing: sub"),
            std::string::npos)
      << log;
  EXPECT_EQ(load(".version 9.9 .target sm_80"), result::unsupportedPtxVersion);
  EXPECT_EQ(load(".version 8.7 .target sm_103"), result::noBinaryForGpu);
  EXPECT_EQ(load(".version 8.7 .target sm_100a"), result::noBinaryForGpu);
  const char *set = std::getenv("MESHWORK_EMULATOR_CC");
  bool isHopper = set && std::string(set) == "9.0";
  EXPECT_EQ(load(".version 8.7 .target sm_90a"),
            isHopper ? result::success : result::noBinaryForGpu);
  EXPECT_STREQ(log, isHopper ? "" : "PTX for sm_90a, the device is sm_80");
  Function none = nullptr;
  EXPECT_EQ(api().moduleGetFunction(&none, module, "none"), result::notFound);
  Function known = function("add");
  EXPECT_EQ(api().moduleUnload(module), result::success);
  int value = 0;
  EXPECT_EQ(api().functionGetAttribute(&value, 0, known),
            result::invalidHandle);
}

TEST_F(Driver, LaunchesAreChecked) {
  Function big = function("big");
  void *parameters[] = {&memory};
  auto launch = [&](unsigned grid, unsigned block, unsigned shared,
                    void **with) {
    return api().launchKernel(big, grid, 1, 1, block, 1, 1, shared, first, with,
                              nullptr);
  };
  EXPECT_EQ(launch(1, 1024, 47 << 10, parameters), result::success);
  EXPECT_EQ(launch(1, 1025, 0, parameters), result::invalidValue);
  EXPECT_EQ(launch(0, 32, 0, parameters), result::invalidValue);
  EXPECT_EQ(launch(1, 32, 48 << 10, parameters), result::invalidValue);
  EXPECT_EQ(launch(1, 32, 0, nullptr), result::invalidValue);
  int attribute = functionAttribute::maxDynamicSharedBytes, value = 0;
  EXPECT_EQ(api().functionSetAttribute(big, attribute, 100 << 10), 0);
  EXPECT_EQ(launch(1, 32, 100 << 10, parameters), result::success);
  EXPECT_EQ(launch(1, 32, (100 << 10) + 4, parameters), result::invalidValue);
  EXPECT_EQ(api().functionSetAttribute(big, attribute, 227 << 10),
            result::invalidValue);
  EXPECT_EQ(api().functionGetAttribute(&value, attribute, big), 0);
  EXPECT_EQ(value, 100 << 10);
  EXPECT_EQ(api().streamSynchronize(first), result::success);
}

TEST_F(Driver, WrongHandlesAndNoContext) {
  auto wrong = reinterpret_cast<Stream>(this);
  EXPECT_EQ(add(wrong), result::invalidHandle);
  EXPECT_EQ(add(nullptr), result::invalidHandle);
  EXPECT_EQ(api().streamSynchronize(wrong), result::invalidHandle);
  Event destroyed = event();
  EXPECT_EQ(api().eventDestroy(destroyed), result::success);
  EXPECT_EQ(api().eventRecord(destroyed, first), result::invalidHandle);
  api().contextSetCurrent(nullptr);
  EXPECT_EQ(add(first), result::invalidContext);
  EXPECT_EQ(api().streamQuery(first), result::invalidContext);
  EXPECT_EQ(api().memoryAllocate(&memory, 8), result::invalidContext);
  api().contextSetCurrent(context);
}

TEST_F(Driver, AKernelSeesOnlyItsDevice) {
  Context other = nullptr;
  ASSERT_EQ(api().primaryContextRetain(&other, 1), result::success);
  ASSERT_EQ(api().contextSetCurrent(other), result::success);
  DevicePtr there = allocate(256);
  ASSERT_EQ(api().contextSetCurrent(context), result::success);
  // A copy reaches both.
  ASSERT_EQ(fill(first, 3), result::success);
  ASSERT_EQ(api().copyOnDevice(there, memory, 256, first), result::success);
  ASSERT_EQ(api().streamSynchronize(first), result::success);
  DevicePtr here = memory;
  memory = there;
  EXPECT_EQ(read(first), all(0x03030303));
  ASSERT_EQ(add(first), result::success);
  EXPECT_EQ(api().streamSynchronize(first), result::illegalAddress);
  memory = here;
  // The other device is well.
  ASSERT_EQ(api().contextSetCurrent(other), result::success);
  EXPECT_EQ(api().memoryFree(there), result::success);
  EXPECT_EQ(api().primaryContextRelease(1), result::success);
}

struct Counter {
  int runs = 0, ends = 0;
};
TEST_F(Driver, HostFunctionsOfOtherLibraries) {
  Counter counter;
  auto run = [](void *state) { ++static_cast<Counter *>(state)->runs; };
  auto end = [](void *state) { ++static_cast<Counter *>(state)->ends; };
  ASSERT_EQ(api().enqueue(first, run, &counter, end), result::success);
  ASSERT_EQ(api().streamSynchronize(first), result::success);
  EXPECT_EQ(counter.runs, 1);
  EXPECT_EQ(counter.ends, 1);
  EXPECT_EQ(api().enqueue(nullptr, run, &counter, end), result::invalidHandle);
  EXPECT_EQ(counter.ends, 2); // it took the state
  Graph graph = nullptr;
  GraphExec exec = nullptr;
  ASSERT_EQ(api().streamBeginCapture(first, captureThreadLocal), 0);
  ASSERT_EQ(api().enqueue(first, run, &counter, end), result::success);
  ASSERT_EQ(api().streamEndCapture(first, &graph), result::success);
  ASSERT_EQ(api().graphInstantiate(&exec, graph, 0), result::success);
  ASSERT_EQ(api().graphDestroy(graph), result::success);
  EXPECT_EQ(counter.runs, 1);
  for (int i = 0; i < 2; ++i)
    ASSERT_EQ(api().graphLaunch(exec, second), result::success);
  ASSERT_EQ(api().streamSynchronize(second), result::success);
  EXPECT_EQ(counter.runs, 3);
  EXPECT_EQ(counter.ends, 2);
  ASSERT_EQ(api().graphExecDestroy(exec), result::success);
  EXPECT_EQ(counter.ends, 3);
  auto fail = [](void *) { api().fail(result::launchFailed, "on purpose"); };
  ASSERT_EQ(api().enqueue(first, fail, nullptr, nullptr), result::success);
  EXPECT_EQ(api().streamSynchronize(first), result::launchFailed);
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
