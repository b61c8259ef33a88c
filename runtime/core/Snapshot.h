// The bytes of the boxes that a rank saves: from its memory, or from a copy.
#pragma once

#include "runtime/checkpoint/BoxFile.h"
#include "runtime/core/Boxes.h"
#include "runtime/core/Memory.h"
#include "runtime/core/Rank.h"

namespace meshwork::runtime {

class Snapshot {
public:
  /// Takes memory for a copy where `copies`; resourceExhausted when there is
  /// not enough, invalidArgument when a name is none that files can hold.
  /// `rank` outlives it.
  static absl::StatusOr<Snapshot> create(const Rank &rank,
                                         const plan::Plan &plan, bool copies);

  const std::vector<OwnBox> &boxes() const { return own; }
  /// How a file tells of them.
  std::vector<BoxToWrite> toWrite() const;

  /// Copies all boxes, or does nothing where there is no copy. Any thread where
  /// the rank's memory is the host's.
  absl::Status take();
  /// The bytes of a box, row-major.
  absl::Status produce(size_t box, WriteBytes write) const;

private:
  explicit Snapshot(const Rank &rank) : rank(&rank) {}
  /// Where a box is copied from.
  struct Source {
    HostView host; // keeps what `part` shows
    Strided part;
  };
  absl::StatusOr<Source> sourceOf(const OwnBox &box) const;

  const Rank *rank;
  std::vector<SavedTensor> all;
  std::vector<OwnBox> own;
  std::vector<uint64_t> places; // of boxes in the copy, and its end
  std::optional<Arena> copy;
};

} // namespace meshwork::runtime
