// --self-test: a report that anyone can send back.
#pragma once

#include "meshwork/Runtime/Run.h"

namespace meshwork {

/// Runs the self-test of runtime/selftest and writes `path`, JSON with the keys
/// of README.md, whole or not at all. It names no host, user, path or address.
absl::Status selfTestTo(const std::string &path,
                        const runtime::RunOptions &options);

} // namespace meshwork
