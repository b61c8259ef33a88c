// libcuda.so.1 as programs see it: opened at run time, called by its symbols.
#pragma once

#include "runtime/device/cuda/DriverApi.h"
#include "test/Support/Emulator/Emulator.h"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <vector>

namespace meshwork::emulator {
using namespace runtime::cuda;

struct Api {
#define MESHWORK_MEMBER(member, symbol, ...) Result (*member)(__VA_ARGS__);
  MESHWORK_CUDA_DRIVER_FUNCTIONS(MESHWORK_MEMBER)
  MESHWORK_CUDA_DRIVER_OPTIONAL_FUNCTIONS(MESHWORK_MEMBER)
#undef MESHWORK_MEMBER
  decltype(&meshworkEmulatorEnqueue) enqueue;
  decltype(&meshworkEmulatorCheck) check;
  decltype(&meshworkEmulatorFail) fail;
};
template <class F> void find(void *library, const char *name, F *&function) {
  function = reinterpret_cast<F *>(dlsym(library, name));
  ASSERT_TRUE(function) << name;
}
inline Api open() {
  void *library = dlopen(EMULATOR_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  EXPECT_TRUE(library) << dlerror();
  Api made{};
#define MESHWORK_FIND(member, symbol, ...) find(library, #symbol, made.member);
  MESHWORK_CUDA_DRIVER_FUNCTIONS(MESHWORK_FIND)
  MESHWORK_CUDA_DRIVER_OPTIONAL_FUNCTIONS(MESHWORK_FIND)
#undef MESHWORK_FIND
  find(library, "meshworkEmulatorEnqueue", made.enqueue);
  find(library, "meshworkEmulatorCheck", made.check);
  find(library, "meshworkEmulatorFail", made.fail);
  return made;
}
inline const Api &api() {
  static const Api all = open();
  return all;
}

// add(to, n): to[i] += 1. slow(to): to[0] *= 10, after a while.
// bad(): writes at address 16. big(to): has shared memory.
inline const char *const code = R"(
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

} // namespace meshwork::emulator
