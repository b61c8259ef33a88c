// How far a rank's GPU has come, for messages about one that stands still or
// has failed.
//
//   progress.begin({list, collectives});   // what is put into the stream next
//   ...
//   progress.end(*main);
//   progress.describe(); // "has not ended ...; the last known to have ended
//   ..."
//
// Behind each piece of work the GPU copies its number to the host. That copy is
// in a stream of its own, so nothing waits for it. Behind a result it is in the
// stream itself, so a fault in the next step is never taken for one in the
// last. To look takes no call of the driver: after a fault the driver knows
// nothing but the fault.
#pragma once

#include "runtime/device/cuda/Memory.h"
#include "runtime/machine/Executor.h"
#include <array>

namespace meshwork::runtime::cuda {

/// What is put into a stream at once: a graph, one instruction, or the copy of
/// a result.
struct Work {
  ListRun list;
  bool meets = false; // it may wait for other ranks
  bool isResult = false;
};

/// Of one rank, used by its thread.
class Progress {
public:
  explicit Progress(const RankProgram &program) : program(program) {}
  absl::Status open(const Gpu &gpu, const QueueOwner &owner);

  /// What `ended` is at least once the work has ended.
  uint64_t begin(const Work &work);
  absl::Status end(Queue &queue);
  uint64_t ended() const;
  /// Whether all that the rank's computing stream was given has ended, or what
  /// has not may wait for other ranks.
  bool mayMeet() const;
  /// What has not ended: `"wte" (Embedding, forward[0]) of microbatch 1 of
  /// step 3`.
  std::string place() const;
  /// The same as a sentence, with what ended before it. After a fault numbers
  /// may be missing that were on their way.
  std::string describe(bool afterFault = false) const;

private:
  /// More than the host is ahead by; else work counts with what follows it.
  static constexpr uint32_t numbers = 4096;
  const Work &at(uint64_t number) const { return works[number % numbers]; }
  std::string textOf(const Work &work) const;

  const RankProgram &program;
  int gpu = 0;
  const Driver *driver = nullptr;
  std::unique_ptr<Queue> side;
  EventHandle passed;
  DeviceMemory table; // i at [i]
  // Numbers of what has ended, as in the table, from `side` and from the stream
  // itself.
  PinnedMemory last;
  std::array<Work, numbers> works;
  uint64_t count = 0;
  bool isNoted = false;       // what has begun
  mutable uint64_t known = 0; // of `ended`
};

} // namespace meshwork::runtime::cuda
