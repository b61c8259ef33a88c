// What the control groups (cgroups) around this process leave of memory and of
// processor time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace meshwork::runtime {

/// The least over the process's group and those around it of limit - used, in
/// bytes; UINT64_MAX without a limit. Page cache does not count as used: the
/// kernel drops it before it refuses memory. Versions 1 and 2, side by side
/// too.
///   root  stands before every path that is read, for tests
uint64_t controlGroupBytes(const std::string &root = "");

/// The least over the same groups of quota / period: how many cores they let
/// this process and those in its groups keep busy, 1.5; nothing without a
/// quota. Cores that a group may not use at all are not asked: the affinity
/// mask has them.
std::optional<double> controlGroupCores(const std::string &root = "");

} // namespace meshwork::runtime
