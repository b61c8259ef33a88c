// The one way in which files come to be: new, never through a link.
//
//   std::string name;
//   FileDescriptor file = createNewFile(folder, "weights.", name);
//   // name is "weights.x4Tq0Z"; invalid (and errno) when it cannot be
#pragma once

#include <string_view>
#include <vector>

#include "runtime/io/Files.h"

namespace meshwork::runtime {

/// Random letters and digits behind the beginning of the name.
constexpr size_t randomEnding = 6;

/// Opens a file for writing that was not there before, in `folder`, with mode
/// 0600. Its name, which goes to `name`, cannot be foreseen, and a link that is
/// called so is not followed.
FileDescriptor createNewFile(const FileDescriptor &folder,
                             std::string_view begin, std::string &name);

/// The names in `folder` that createNewFile may have made of `begin`.
std::vector<std::string> namesOfNewFiles(const std::string &folder,
                                         std::string_view begin);

/// The mode that the umask leaves of 0666: for what is to stay.
bool setModeOfNew(const FileDescriptor &file);

/// Where writing to a user's `path` ends. Links are followed, and the target of
/// the last one need not exist. kFailedPrecondition names a link of another
/// user in a folder that everybody may write to (/tmp). The kernel's
/// fs.protected_symlinks refuses those in opens, but cannot where a program
/// follows a name by itself.
absl::StatusOr<std::string> outputTarget(const std::string &path);

} // namespace meshwork::runtime
