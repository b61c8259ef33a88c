// The one scheduler that all generated tables come from.
//
// A rule says what a rank would like to do next, best first; the scheduler
// starts the first of these that can start. Each stage does its microbatches in
// order, so a wish is a kind and a stage.
#ifndef MESHWORK_LIB_SCHEDULES_LISTSCHEDULER_H
#define MESHWORK_LIB_SCHEDULES_LISTSCHEDULER_H

#include "lib/Schedules/Table.h"

#include <limits>
#include <optional>
#include <vector>

namespace meshwork::schedules {

/// Waits for a wish as long as it takes.
constexpr double forEver = std::numeric_limits<double>::infinity();

struct Wish {
  Kind kind = Kind::forward;
  int32_t stage = 0;
  /// How long the rank would rather be idle than turn to its next wish.
  double patience = 0;
  bool withNext = false;
};

/// What is to be scheduled.
struct Work {
  int32_t microbatches = 0;
  std::vector<int32_t> rankOf;
  /// The stages of each rank, in the order in which a microbatch visits them.
  std::vector<std::vector<int32_t>> stagesOf;
  /// An element for each stage, `transfer` 0 within a rank.
  Costs costs;
};

/// How many microbatches of each stage have begun their F, I or B, and W or B.
struct Progress {
  std::vector<int32_t> forward, inputGrad, weightGrad;
};

class Rule {
public:
  virtual ~Rule() = default;
  /// Adds what `rank` would like to do next. Work that is done already or whose
  /// F or I the rank has yet to begin may be wished for; it cannot start.
  virtual void wishes(int32_t rank, const Progress &done,
                      std::vector<Wish> &to) = 0;
};

struct Scheduled {
  Table table;
  /// When each rank begins and ends.
  std::vector<double> begin, end;
  double makespan = 0;
  /// The longest time from a rank's begin to its end.
  double span = 0;
};

/// Nothing where the rule waits for what never comes.
std::optional<Scheduled> schedule(const Work &work, Rule &rule);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_LISTSCHEDULER_H
