// When each action of a legal table runs, given what actions take.
#ifndef MESHWORK_LIB_SCHEDULES_SIMULATE_H
#define MESHWORK_LIB_SCHEDULES_SIMULATE_H

#include "lib/Schedules/Table.h"

#include "absl/status/statusor.h"

#include <memory>
#include <vector>

namespace meshwork::schedules {

struct Timeline {
  struct Span {
    double begin = 0, end = 0;
  };
  /// Of a rank, or of one virtual stage.
  struct Work {
    /// Time in F, B, I, W.
    double busy = 0;
    /// The most microbatches alive at once, from F to the end of B or W; of a
    /// rank, counted in virtual stages.
    int32_t liveMicrobatches = 0;
  };
  double makespan = 0;
  /// 1 - busy / span of the rank with the longest span, from its first to its
  /// last computing action, as published rates are counted: 1 - busy / makespan
  /// where the first rank also ends last.
  double bubbleFraction = 0;
  /// 1 - busy / makespan over all ranks together: of two tables with the same
  /// work that end at the same time it is the same, and the bubble need not be.
  double idleFraction = 0;
  std::vector<Work> ranks;
  /// Of each virtual stage.
  std::vector<Work> stages;
  /// The span of each action, as they stand in Table::ranks. What starts
  /// together has one span; a transfer's begins when both ends are posted.
  std::vector<std::vector<Span>> spans;
};

/// Transfers do not block the rank that computes. A table without SEND and RECV
/// is simulated as one whose transfers are posted as soon as they can be. An
/// error where the table cannot run to its end (judge says why) or the costs do
/// not fit it.
absl::StatusOr<Timeline> simulate(const Table &table, const Costs &costs);

/// Of one table with many costs: what waits for what is found once.
class Makespan {
public:
  /// `table` is one that simulate() took, and lives as long.
  explicit Makespan(const Table &table);
  ~Makespan();
  /// As simulate() tells, of costs that fit the table.
  double of(const Costs &costs) const;
  /// What the rank with most work computes in all.
  double busiest(const Costs &costs) const;

private:
  struct Graph;
  std::unique_ptr<Graph> graph;
};

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_SIMULATE_H
