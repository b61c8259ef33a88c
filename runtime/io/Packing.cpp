#include "runtime/io/Packing.h"

#include <algorithm>

namespace meshwork::runtime {

Packing packDocuments(const std::vector<uint64_t> &firstTokens,
                      uint64_t numTokens, uint64_t room) {
  Packing packing;
  bool isOpen = false; // whether the last sample may take another document
  for (size_t i = 0; i < firstTokens.size() && firstTokens[i] < numTokens;
       ++i) {
    uint64_t first = firstTokens[i];
    uint64_t end = i + 1 < firstTokens.size() ? firstTokens[i + 1] : numTokens;
    uint64_t size = end - first, kept = std::min(size, room);
    if (isOpen && packing.samples.back().count + size <= room)
      packing.samples.back().count += size;
    else
      packing.samples.push_back({first, kept});
    isOpen = kept == size;
    packing.cutDocuments += !isOpen;
    packing.cutTokens += size - kept;
  }
  return packing;
}

} // namespace meshwork::runtime
