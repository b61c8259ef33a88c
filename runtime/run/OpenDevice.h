// Which device a plan runs on.
#pragma once

#include "runtime/machine/Executor.h"

namespace meshwork::runtime {

/// By the plan's device. failedPrecondition (exit code 69) says what this
/// machine lacks; invalidArgument names options that the device does not have.
absl::StatusOr<std::unique_ptr<Device>>
openDevice(const plan::Plan &plan, const DeviceOptions &options);

} // namespace meshwork::runtime
