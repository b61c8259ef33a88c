// Device memory of all emulated devices: memory of this process with guard
// zones around each allocation, so that every access can be checked.
#pragma once

#include "test/Support/Emulator/ptx/Memory.h"

#include <cstddef>
#include <map>
#include <memory>
#include <shared_mutex>

namespace meshwork::emulator {

class Allocations {
public:
  /// Filled with 0xff, which reads as NaN. 0 when `bytes` is more than is free
  /// of `limit` on this device.
  uint64_t allocate(int device, size_t bytes, size_t limit);
  /// False when nothing begins there. `intact`: nobody wrote around it.
  bool release(uint64_t address, bool &intact);
  /// Of a device; returns how many bytes had not been freed.
  size_t releaseAll(int device);
  size_t used(int device) const;

  /// On one device, or on any (-1).
  ptx::Range find(uint64_t address, int device) const;
  bool covers(uint64_t address, size_t bytes) const;
  std::string describe(uint64_t address) const;

private:
  struct Allocation {
    int device;
    size_t bytes;
    std::unique_ptr<std::byte[]> memory;
    ptx::Range range;
    bool intact() const;
  };
  const Allocation *holding(uint64_t address) const;

  mutable std::shared_mutex mutex;
  std::map<uint64_t, Allocation> live;
};

/// What a kernel of one device may touch.
class DeviceView : public ptx::Memory {
public:
  DeviceView(const Allocations &all, int device) : all(all), device(device) {}
  ptx::Range find(uint64_t address) const override {
    return all.find(address, device);
  }
  std::string describe(uint64_t address) const override {
    return all.describe(address);
  }

private:
  const Allocations &all;
  int device;
};

} // namespace meshwork::emulator
