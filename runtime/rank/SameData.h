// Whether all processes read the same tokens: on hosts of their own, one may
// have a stale copy.
#pragma once

#include "runtime/io/Tokens.h"
#include "runtime/rank/Processes.h"

namespace meshwork::runtime {

/// By all processes, each with its own source. 78 names the ranks whose tokens
/// are not those that most have: another number, or another fingerprint.
absl::Status agreeOnData(const Processes &processes, const TokenSource &tokens,
                         const std::string &path);

} // namespace meshwork::runtime
