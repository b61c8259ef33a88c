// `--measure`: steps of a spec on the ranks that are here, by the compiler and
// the launcher as a user runs them.
#pragma once

#include "absl/status/status.h"
#include "tools/meshwork/tune/Search.h"

namespace meshwork::tune {

/// Runs the first `top` of found.rows for a few steps each, on random tokens.
/// Each gets its seconds, or why it has none. The fastest of them comes first
/// then; what was not measured stays behind them. The result is an error where
/// there is no place for files.
absl::Status measureBest(Specs &specs, const Facts &facts, size_t top,
                         Found &found);

} // namespace meshwork::tune
