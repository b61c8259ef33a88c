// `meshwork checkpoint inspect` and `verify`: what a run has saved.
#pragma once

#include <memory>
#include <string>

#include "runtime/checkpoint/Checkpoint.h"

namespace meshwork::driver {

/// A checkpoint's folder, or the newest complete one in a folder of all.
absl::StatusOr<std::unique_ptr<runtime::Checkpoint>>
openNewest(const std::string &folder);

/// Both print to stdout, errors to stderr, and return the exit code: 65 when a
/// checkpoint is damaged. `folder` is that of one checkpoint or of all.
int inspectCheckpoints(const std::string &folder, bool json);
/// Reads and hashes every byte.
int verifyCheckpoints(const std::string &folder);

} // namespace meshwork::driver
