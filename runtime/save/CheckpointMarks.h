// Whether all processes see one folder: each leaves a file there, and looks for
// those of the others.
//
//   removeMarksLeft(folder); // by who holds the folder's lock
//   status = checkShared(folder, processes); // by all
#pragma once

#include "runtime/rank/Processes.h"

namespace meshwork::runtime {

/// "rank 3 (host b): ", where there are several.
std::string whoIs(const Processes &processes);

/// Of --checkpoint: 73.
absl::Status cannotCheckpoint(const std::string &why);

/// All processes say "" or what is wrong; the first that is.
absl::Status agreeOnCheckpoint(const Processes &processes,
                               const std::string &mine);

/// What processes that were killed have left in `folder`.
void removeMarksLeft(const std::string &folder);

/// That each may write to `folder`, and that it is one and the same.
absl::Status checkShared(const std::string &folder, const Processes &processes);

} // namespace meshwork::runtime
