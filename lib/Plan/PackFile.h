// Plans are small in files: what repeats (layers, stages, the rounds of a
// schedule, a model's text) is written once and referred to (Zstandard, RFC
// 8878). In memory a plan is its FlatBuffer.
#pragma once

#include <cstdint>
#include <vector>

namespace meshwork::plan {

/// The file of a plan, packed. PlanFile reads either.
///   file  a frame and a FlatBuffer, as written here
std::vector<char> packFile(const std::vector<char> &file);

/// Whether a payload is packed. No FlatBuffer begins like this: its root would
/// be at more than 2 GiB.
bool isPacked(const void *payload, uint64_t bytes);

/// The most bytes that a payload of that size may unpack to: a few hundred
/// bytes must not ask for gigabytes. One of 126 equal layers comes to five
/// times.
constexpr uint64_t mostUnpacked(uint64_t packedBytes) {
  return packedBytes * 1024;
}

} // namespace meshwork::plan
