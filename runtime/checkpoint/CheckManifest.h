// What a manifest must mean. Internal to runtime/checkpoint.
#pragma once

#include "runtime/checkpoint/Manifest.h"
#include <absl/status/status.h>
#include <optional>

namespace meshwork::runtime {

inline constexpr char manifestFormat[] = "meshwork-checkpoint";
/// From 2 on a tensor may have `files`. Without them 1 is written, so older
/// releases read it too.
inline constexpr uint64_t manifestVersion = 2, versionWithoutFiles = 1;
/// No model has more; keeps the corners of a box countable.
inline constexpr size_t maxStoredDims = 16;

/// Everything but the files' bytes; kDataLoss.
absl::Status checkManifest(const Manifest &manifest);

/// Whether the boxes, which lie in `shape`, hold each element once; kDataLoss
/// names one that they do not. Their number times 2 for each dim that they
/// split is the cost.
absl::Status checkTiling(const std::vector<int64_t> &shape,
                         const std::vector<StoredBox> &boxes);

/// Bytes of an element, of the types that states are stored in.
std::optional<uint64_t> storedWidth(std::string_view dtype);
/// Bytes of a box, which has been checked.
uint64_t storedBytes(const StoredState &state, const StoredBox &box);

} // namespace meshwork::runtime
