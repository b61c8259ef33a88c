// NVIDIA's driver, opened at run time: one build also runs where there is none.
//
//   const Driver *driver;
//   MESHWORK_ASSIGN_OR_RETURN(driver, Driver::open());
//   MESHWORK_RETURN_IF_ERROR(driver->check(
//       driver->memoryAllocate(&arena, bytes), "cuMemAlloc of the arena"));
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/device/cuda/DriverApi.h"

namespace meshwork::runtime::cuda {

struct Driver {
#define MESHWORK_CUDA_MEMBER(member, symbol, ...) Result (*member)(__VA_ARGS__);
  MESHWORK_CUDA_DRIVER_FUNCTIONS(MESHWORK_CUDA_MEMBER)
  // Null where the driver is too old for them.
  MESHWORK_CUDA_DRIVER_OPTIONAL_FUNCTIONS(MESHWORK_CUDA_MEMBER)
#undef MESHWORK_CUDA_MEMBER

  int version = 0; // 12040 is 12.4: the newest CUDA that the driver serves
  int devices = 0; // at least one

  /// Opened and initialized once for the life of the process, by any thread.
  /// failedPrecondition (exit code 69) when libcuda.so.1 is missing or too old,
  /// or there is no device.
  static absl::StatusOr<const Driver *> open();

  /// ok, or an error that tells what failed ("cuMemAlloc of the arena"), and
  /// the driver's name, number and description of `result`. Without memory it
  /// is resourceExhausted; for code that this device or driver cannot run,
  /// failedPrecondition. All else is internal: after a fault in a kernel every
  /// call returns it.
  absl::Status check(Result result, absl::string_view what) const;
};

} // namespace meshwork::runtime::cuda
