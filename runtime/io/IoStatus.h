// Errors of runtime/io with the exit codes that its contract gives them.
#pragma once

#include "absl/status/status.h"

namespace meshwork::runtime {

/// Attaches 73 to a file that cannot be created and 74 to a read or write that
/// failed on the way; other codes say it themselves.
absl::Status fromIo(const absl::Status &status);

} // namespace meshwork::runtime
