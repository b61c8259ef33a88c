// The folder of a checkpoint while it is written, and when it goes.
#pragma once

#include <absl/status/status.h>
#include <string>
#include <vector>

namespace meshwork::runtime {

/// Makes `path` and the folders above it, durable; fine where it is there.
absl::Status makeSaveFolder(const std::string &path);

/// What a save that failed has left: `files` of the folder, and the folder when
/// nothing else is in it. What cannot be removed stays.
void removeSave(const std::string &folder,
                const std::vector<std::string> &files);

} // namespace meshwork::runtime
