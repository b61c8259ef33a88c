// A run that a signal ended.
#pragma once

#include "absl/status/status.h"
#include <string>

namespace meshwork::runtime {

/// `cancelled`, with exit code 128 + signal: "stopped by SIGTERM " and `when`.
absl::Status stoppedBy(int signal, const std::string &when);

} // namespace meshwork::runtime
