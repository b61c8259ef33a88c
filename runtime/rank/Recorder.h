// Times of instructions, for traces and profiles. One per rank; written by
// the rank's thread, read when all ranks have ended.
#pragma once

#include "runtime/rank/Rank.h"

namespace meshwork::runtime {

struct TraceEvent {
  uint64_t step;
  int64_t beginNs, endNs, waitNs;
  uint32_t index, microbatch, list;
};

struct InstructionTotal {
  int64_t ns = 0, waitNs = 0;
  uint64_t calls = 0;
};

class Recorder : public InstructionObserver {
public:
  /// Keeps events of the first `traceSteps` steps that it sees; sums over all
  /// of `steps` but the first, which is slower (caches, page tables), unless it
  /// is the only one.
  Recorder(const Rank &rank, uint64_t traceSteps, uint64_t steps);
  void beginStep(uint64_t step);
  void after(const ListRun &run, uint32_t at, int64_t beginNs, int64_t endNs,
             const CommTimes &times) override;

  const std::vector<TraceEvent> &events() const { return kept; }
  const InstructionTotal &total(uint32_t list, uint32_t index) const {
    return totals[list][index];
  }
  uint64_t summedSteps() const { return summed; }

private:
  const Rank &rank;
  std::vector<TraceEvent> kept;
  std::vector<std::vector<InstructionTotal>> totals; // by list
  uint64_t traceSteps, step = 0, seen = 0, summed = 0;
  bool skipsFirst, sums = false;
};

using Recorders = std::vector<std::unique_ptr<Recorder>>;
using Ranks = std::vector<std::unique_ptr<Rank>>;

/// A Chrome trace (chrome://tracing, ui.perfetto.dev): a process per rank with
/// a track for steps, one for computation, one for communication that
/// computation waits for, one per channel, and one per list of transfers. An
/// arrow goes from each send to its receive. Times are in microseconds since
/// the first event. Names the
/// plan, and of each event its instruction, for `meshwork explain --measured`.
///   texts  of all processes, each from `traceText` with one origin: the least
///          `traceOrigin`
absl::Status writeTrace(const std::string &path, const plan::Plan &plan,
                        absl::Span<const std::string> texts);
std::string traceText(const Ranks &ranks, const Recorders &recorders,
                      int64_t originNs);
int64_t traceOrigin(const Recorders &recorders);

/// Time per instruction, mean over the ranks of this process that run the same
/// program.
absl::Status writeProfileJson(const std::string &path, const Ranks &ranks,
                              const Recorders &recorders);

/// The same as a table, slowest first. Instructions whose names differ only in
/// numbers (layers) share a row.
std::string profileTable(const Ranks &ranks, const Recorders &recorders);

} // namespace meshwork::runtime
