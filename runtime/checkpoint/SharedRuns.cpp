#include "runtime/checkpoint/SharedRuns.h"
#include <algorithm>

namespace meshwork::runtime {

std::optional<SharedRuns> SharedRuns::of(const StoredBox &stored,
                                         uint64_t width,
                                         absl::Span<const int64_t> begin,
                                         absl::Span<const int64_t> extent) {
  SharedRuns runs;
  runs.width = width;
  runs.first = {stored.offset, 0, 1};
  uint64_t inFile = width, inBox = 1; // of one index of the dim
  bool joins = true; // a dim joins those inside it that both have in full
  for (size_t dim = begin.size(); dim-- > 0;) {
    int64_t from = std::max(stored.begin[dim], begin[dim]);
    int64_t to = std::min(stored.begin[dim] + stored.extent[dim],
                          begin[dim] + extent[dim]);
    if (from >= to)
      return std::nullopt;
    runs.first.byte += static_cast<uint64_t>(from - stored.begin[dim]) * inFile;
    runs.first.element += static_cast<uint64_t>(from - begin[dim]) * inBox;
    uint64_t shared = static_cast<uint64_t>(to - from);
    if (joins) {
      runs.first.count *= shared;
    } else {
      runs.steps.push_back({shared, inFile, inBox});
      runs.numRuns *= shared;
    }
    joins =
        joins && to - from == stored.extent[dim] && to - from == extent[dim];
    inFile *= static_cast<uint64_t>(stored.extent[dim]);
    inBox *= static_cast<uint64_t>(extent[dim]);
  }
  return runs;
}

SharedRun SharedRuns::at(uint64_t run) const {
  SharedRun found = first;
  for (const Step &step : steps) {
    found.byte += run % step.extent * step.bytes;
    found.element += run % step.extent * step.elements;
    run /= step.extent;
  }
  return found;
}

void SharedRuns::inBytes(
    uint64_t begin, uint64_t end,
    absl::FunctionRef<void(const SharedRun &)> take) const {
  uint64_t from = 0, to = numRuns; // the first run that ends behind `begin`
  while (from < to) {
    uint64_t middle = from + (to - from) / 2;
    if (byteOf(middle) + runBytes() > begin)
      to = middle;
    else
      from = middle + 1;
  }
  for (; from < numRuns; ++from) {
    SharedRun run = at(from);
    if (run.byte >= end)
      return;
    uint64_t last = std::min(end, run.byte + runBytes());
    uint64_t cut = std::max(begin, run.byte);
    take({cut, run.element + (cut - run.byte) / width, (last - cut) / width});
  }
}

} // namespace meshwork::runtime
