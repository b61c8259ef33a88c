// Samples of whole documents: each begins with one. Internal to runtime/io.
#pragma once

#include <cstdint>
#include <vector>

namespace meshwork::runtime {

struct Packing {
  struct Sample {
    uint64_t first; // token of the file
    uint64_t count; // tokens; padding follows where there is room
  };
  std::vector<Sample> samples;
  uint64_t cutDocuments = 0, cutTokens = 0; // not read
};

/// Documents in their order, as many to a sample as fit: `room` tokens. One
/// that is longer has a sample of its own and is cut there.
///   firstTokens  of each document; the last may be the end, `numTokens`
Packing packDocuments(const std::vector<uint64_t> &firstTokens,
                      uint64_t numTokens, uint64_t room);

} // namespace meshwork::runtime
