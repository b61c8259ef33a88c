// Which value a user means.
#pragma once

#include "absl/status/statusor.h"
#include "meshwork/Plan/Plan.h"
#include <string>
#include <string_view>
#include <vector>

namespace meshwork::explain {

/// Whether `name` matches `pattern`, where `*` is any run of characters and `?`
/// any one.
bool matchesGlob(std::string_view pattern, std::string_view name);

/// The full names of the parameters or buffers that `query` means. `query` is a
/// whole name, or the end of one from a '.' or the start of a word on, or a
/// glob. Only a glob may mean several. Parameters come before buffers. The
/// error is invalidArgument when there is none, or the end is of more than one.
absl::StatusOr<std::vector<std::string>> findNames(const plan::Plan &plan,
                                                   std::string_view query);

} // namespace meshwork::explain
