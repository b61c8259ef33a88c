// Which checkpoints of a folder stay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace meshwork::runtime {

/// Removes a checkpoint, or the rest of a save that was cut off. The manifest
/// goes first, so that nobody takes the rest for a checkpoint; then the files
/// that saves make, then the folder. Anything else in the folder stays, and the
/// folder with it. A folder whose manifest is not of a checkpoint stays, too.
void removeCheckpoint(const std::string &path);

/// After the save of `step`: the newest `keep` checkpoints up to it stay, and
/// with `keepsBest` the one whose evaluation found the lowest loss (of equal
/// ones the oldest). Older ones go, and what older saves that were cut off have
/// left. The step of the best one; none where it is not asked for, or none was
/// evaluated.
std::optional<uint64_t> keepNewest(const std::string &folder, uint64_t keep,
                                   uint64_t step, bool keepsBest);

/// Before a run saves: removes what saves that were cut off have left.
void removeIncomplete(const std::string &folder);

} // namespace meshwork::runtime
