// What the driver finds wrong, and what it must not let pass.
#include "test/Emulator/DriverCase.h"

#include <cstdlib>
#include <cstring>
#include <string>

namespace meshwork::emulator {
namespace {

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

TEST_F(Driver, TensorMaps) {
  alignas(tensorMap::alignment) char map[tensorMap::bytes + 8] = {};
  uint64_t dims[] = {64, 8}, strides[] = {128};
  uint32_t box[] = {64, 8}, ones[] = {1, 1};
  auto encode = [&](void *to, int dataType, int swizzle) {
    return api().tensorMapEncodeTiled(to, dataType, 2, memory, dims, strides,
                                      box, ones, tensorMap::interleaveNone,
                                      swizzle, tensorMap::l2Promotion128B,
                                      tensorMap::fillZeros);
  };
  int bf16 = tensorMap::bfloat16, swizzle = tensorMap::swizzle128B;
  EXPECT_EQ(encode(map, bf16, swizzle), result::success);
  EXPECT_EQ(encode(map + 8, bf16, swizzle), result::invalidValue);
  EXPECT_EQ(encode(nullptr, bf16, swizzle), result::invalidValue);
  EXPECT_EQ(encode(map, bf16, 1), result::notSupported);
  EXPECT_EQ(encode(map, tensorMap::float32, swizzle), result::invalidValue);
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
