// --measure-machine: what this machine does a second, as a machine file.
#pragma once

#include "runtime/run/MeasureMachine.h"

namespace meshwork {

/// As a machine file says it.
std::string machineText(const runtime::MeasuredMachine &found);

/// Measures and writes `path`, whole or not at all. Links that this run does
/// not measure are kept from a machine file that is there: one run by itself
/// and one under mpirun complete each other. What is there and is no machine
/// file is not replaced.
absl::Status measureMachineTo(const std::string &path,
                              const runtime::RunOptions &options);

/// The same of GPUs.
absl::Status measureGpusTo(const std::string &path,
                           const runtime::RunOptions &options);

} // namespace meshwork
