// Counters by which thread blocks take their work (kernels/WgmmaAttention.h),
// in memory of the device.
//
//   WgmmaCounters counters(driver);
//   DevicePtr counter = *counters.take(stream); // 0
#pragma once

#include "absl/status/statusor.h"
#include "runtime/device/cuda/Driver.h"
#include <mutex>
#include <vector>

namespace meshwork::runtime::cuda {

/// Of one GPU, whose context is current; by ranks in threads of their own.
class WgmmaCounters {
public:
  explicit WgmmaCounters(const Driver &driver) : driver(driver) {}
  ~WgmmaCounters();
  WgmmaCounters(const WgmmaCounters &) = delete;

  /// A u32 that nobody else has, zero when this returns. `stream` is used for
  /// that.
  absl::StatusOr<DevicePtr> take(Stream stream);

private:
  absl::Status addChunk(Stream stream);

  const Driver &driver;
  std::mutex mutex;
  std::vector<DevicePtr> chunks;
  size_t left = 0; // of the last one
};

} // namespace meshwork::runtime::cuda
