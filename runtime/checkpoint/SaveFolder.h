// The folder of a checkpoint while it is written, and when it goes.
#pragma once

#include <absl/status/status.h>
#include <string>
#include <vector>

namespace meshwork::runtime {

/// Makes `path` and the folders above it, durable; fine where it is there.
absl::Status makeSaveFolder(const std::string &path);

/// Nothing is written or removed through a link that is called like a
/// checkpoint: no save has made it, and what it leads to is somebody's.
bool isLink(const std::string &path);
/// As makeSaveFolder, for the folder of one checkpoint.
absl::Status makeCheckpointFolder(const std::string &path);

/// What a save that failed has left: `files` of the folder, and the folder when
/// nothing else is in it. What cannot be removed stays.
void removeSave(const std::string &folder,
                const std::vector<std::string> &files);

} // namespace meshwork::runtime
