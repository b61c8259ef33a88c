// A device, with a stream, for tests of what runs on it. The driver is
// the emulator's (test/Support/Emulator), or a real one when LD_LIBRARY_PATH
// says so.
#pragma once

#include "runtime/device/cuda/Driver.h"
#include <gtest/gtest.h>
#include <memory>
#include <vector>

namespace meshwork::runtime::cuda::test {

/// Aborts a test that cannot go on.
inline void expectOk(const absl::Status &status) {
  if (!status.ok())
    throw std::runtime_error(std::string(status.message()));
}

class TestDevice {
public:
  explicit TestDevice(uint32_t ordinal = 0) {
    absl::StatusOr<const Driver *> opened = Driver::open();
    expectOk(opened.status());
    driver = *opened;
    expect(driver->deviceGet(&device, static_cast<int>(ordinal)),
           "cuDeviceGet");
    expect(driver->primaryContextRetain(&context, device), "retain");
    makeCurrent();
    stream = makeStream();
  }
  ~TestDevice() {
    makeCurrent();
    for (Stream each : streams) {
      (void)driver->streamSynchronize(each);
      (void)driver->streamDestroy(each);
    }
    for (DevicePtr each : memory)
      (void)driver->memoryFree(each);
    (void)driver->primaryContextRelease(device);
  }

  void expect(Result result, const char *what) const {
    expectOk(driver->check(result, what));
  }
  void makeCurrent() const {
    expect(driver->contextSetCurrent(context), "cuCtxSetCurrent");
  }
  Stream makeStream() {
    Stream made = nullptr;
    expect(driver->streamCreate(&made, streamNonBlocking, 0), "stream");
    streams.push_back(made);
    return made;
  }
  DevicePtr allocate(size_t bytes) {
    DevicePtr made = 0;
    expect(driver->memoryAllocate(&made, bytes), "cuMemAlloc");
    memory.push_back(made);
    return made;
  }

  template <typename T> void write(DevicePtr to, const std::vector<T> &values) {
    expect(driver->copyToDevice(to, values.data(), values.size() * sizeof(T),
                                stream),
           "copy to device");
    synchronize();
  }
  template <typename T> std::vector<T> read(DevicePtr from, size_t count) {
    std::vector<T> values(count);
    expect(driver->copyToHost(values.data(), from, count * sizeof(T), stream),
           "copy to host");
    synchronize();
    return values;
  }
  void synchronize() const {
    expect(driver->streamSynchronize(stream), "cuStreamSynchronize");
  }

  const Driver *driver = nullptr;
  Device device = 0;
  Context context = nullptr;
  Stream stream = nullptr;

private:
  std::vector<Stream> streams;
  std::vector<DevicePtr> memory;
};

} // namespace meshwork::runtime::cuda::test
