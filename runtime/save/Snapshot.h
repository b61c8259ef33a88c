// The bytes of the boxes that a rank saves: from its memory, or from a copy.
#pragma once

#include "lib/Plan/Boxes.h"
#include "runtime/checkpoint/BoxFile.h"
#include "runtime/machine/Memory.h"
#include "runtime/rank/Rank.h"
#include <atomic>
#include <condition_variable>
#include <mutex>

namespace meshwork::runtime {

class Snapshot {
public:
  /// Takes memory for a copy where `copies`; resourceExhausted when there is
  /// not enough, invalidArgument when a name is none that files can hold.
  /// `rank` outlives it.
  static absl::StatusOr<Snapshot> create(const Rank &rank,
                                         const plan::Plan &plan, bool copies);

  const std::vector<plan::OwnBox> &boxes() const { return own; }
  /// How a file tells of them.
  std::vector<BoxToWrite> toWrite() const;

  /// From now on the boxes are to be copied, as they are when what was started
  /// has ended; without a copy there is nothing to copy.
  void begin();
  /// Copies pieces that no other thread has begun to copy, and returns how it
  /// went when all are copied. Any threads may call it, each helps.
  absl::Status finish();
  bool isCopied() const; // or there is nothing to copy

  /// The bytes of a box, row-major.
  absl::Status produce(size_t box, WriteBytes write) const;

private:
  explicit Snapshot(const Rank &rank) : rank(&rank) {}
  /// Where a box is copied from.
  struct Source {
    HostView host; // keeps what `part` shows
    Strided part;
  };
  struct Piece {
    size_t box;
    plan::Block block;
    uint64_t place; // in the copy
  };
  struct Copying {
    std::atomic<size_t> begun = 0;
    std::mutex mutex; // guards what follows
    std::condition_variable changed;
    size_t done = 0;
    absl::Status status;
  };
  absl::StatusOr<Source> sourceOf(const plan::OwnBox &box) const;
  absl::Status takeMemory();
  absl::Status copyPiece(const Piece &piece) const;

  const Rank *rank;
  std::vector<plan::SavedTensor> all;
  std::vector<plan::OwnBox> own;
  std::vector<uint64_t> places; // of boxes in the copy, and its end
  std::optional<Arena> copy;
  std::vector<Piece> pieces; // to copy
  std::unique_ptr<Copying> copying = std::make_unique<Copying>();
};

} // namespace meshwork::runtime
