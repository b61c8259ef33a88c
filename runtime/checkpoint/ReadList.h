// Boxes that are asked for, read by the hashed ranges of the files that hold
// them: each range once, in the order of files. Internal to runtime/checkpoint.
#pragma once

#include "runtime/checkpoint/CheckedInput.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/SharedRuns.h"

namespace meshwork::runtime {

class ReadList {
public:
  /// `box` lies in the tensor whose state this is, and outlives the list.
  void add(const WantedBox &box, const StoredState &state);

  /// Fills all boxes. kDataLoss names the file, the range that was changed and
  /// the tensor that was asked for: of several the first in the file.
  absl::Status read(absl::Span<const CheckedInput> files, RangeBuffers &buffers,
                    OnThreads onThreads);

private:
  struct Source {
    const WantedBox *box;
    uint64_t width;
    SharedRuns runs;
  };
  /// A hashed range that a source has elements in.
  struct Item {
    size_t file, range, source;
  };
  using Items = absl::Span<const Item>;
  std::vector<Items> byRange();
  absl::Status readOne(const CheckedInput &file, Items items,
                       unsigned char *buffer) const;

  std::vector<Source> sources;
  std::vector<Item> all;
};

} // namespace meshwork::runtime
