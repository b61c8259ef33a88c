// Makes a finished plan smaller: tables, vectors and strings that are equal are
// written once and referred to, since offsets in a FlatBuffer may meet. Layers
// and stages that are equal have most of their tables in common.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "meshwork/Plan/Plan.h"

namespace meshwork::plan {

/// The payload of a plan (what follows its frame) that says the same as `plan`.
/// Instructions, lists and programs stay apart: who reads a plan may tell them
/// by their address. Takes time and memory in proportion to the size of `plan`.
///   plan  the root of a buffer that was written here, and so is trusted.
/// None where the check at load would refuse the result: maxTables.
std::optional<std::vector<uint8_t>> shareTables(const Plan &plan);

/// How many tables the check at load visits of a payload of that size before it
/// refuses it. A table of its own takes 8 bytes at least, so a plan that shares
/// little stays below; a plan that points at one table again and again does
/// not.
constexpr uint64_t maxTables(uint64_t payloadBytes) {
  return payloadBytes / 8 + 1;
}

} // namespace meshwork::plan
