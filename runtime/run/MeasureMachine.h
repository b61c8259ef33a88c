// What this machine does a second: products, copies and transfers, timed with
// the code that training runs.
#pragma once

#include "absl/status/statusor.h"
#include "meshwork/Runtime/Run.h"
#include "runtime/device/cpu/MeasureWork.h"
#include "runtime/rank/Processes.h"
#include <optional>

namespace meshwork::runtime {

/// An all_reduce of f32 between `ranks` ranks: seconds for one element, and for
/// `bytes` bytes.
struct MeasuredLink {
  uint32_t ranks = 0;
  uint64_t bytes = 0;
  double smallSeconds = 0, largeSeconds = 0;
};

/// Of one node, the sum over this run's processes on it.
struct MeasuredMachine {
  uint32_t cores = 0;
  WorkRates rates;
  double launchSeconds = 0; // to begin work on all cores of a rank
  std::optional<MeasuredLink> inProcess, withinNode, betweenNodes;
  /// By rank, where ranks are processes: what each found on its cores.
  std::vector<WorkRates> ofRanks = {};
};

/// By all processes, beside other work that they have in common. Complete on
/// the first one.
absl::StatusOr<MeasuredMachine> measureOn(Processes &processes,
                                          const RunOptions &options);

/// Takes about ten seconds. One process measures its cores and transfers
/// between threads; processes that a launcher started measure their shares of
/// cores at the same time, and transfers between them. `deliver` gets the
/// result on the first process alone; what it returns ends all of them. Of
/// `options` only transport, threads, pinning and the time-out count.
absl::Status measureMachine(
    const RunOptions &options,
    absl::FunctionRef<absl::Status(const MeasuredMachine &)> deliver);

} // namespace meshwork::runtime
