// Which value a user means.
#pragma once

#include "absl/status/statusor.h"
#include "meshwork/Plan/Plan.h"
#include <string>
#include <string_view>

namespace meshwork::explain {

/// Whether `name` matches `pattern`, where `*` is any run of characters and `?`
/// any one.
bool matchesGlob(std::string_view pattern, std::string_view name);

/// The full name of the one parameter or buffer that `query` means: a whole
/// name; or the end of names, from a '.' or the start of a word on; or a glob.
/// Parameters come before buffers. invalidArgument when there is none, or more
/// than one.
absl::StatusOr<std::string> findName(const plan::Plan &plan,
                                     std::string_view query);

} // namespace meshwork::explain
