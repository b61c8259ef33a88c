// Tables of the known schedules, and the best that a search finds.
#ifndef MESHWORK_LIB_SCHEDULES_GENERATE_H
#define MESHWORK_LIB_SCHEDULES_GENERATE_H

#include "lib/Schedules/Table.h"

#include "absl/status/statusor.h"

#include <string>
#include <string_view>

namespace meshwork::schedules {

/// What a schedule is wanted for.
struct Wanted {
  /// One of lib/Spec/ScheduleNames.h, such as 1f1b or auto.
  std::string name = "1f1b";
  int32_t ranks = 1;
  int32_t microbatches = 1;
  /// Virtual stages a rank; 0 is the name's own.
  int32_t virtualStages = 0;
  /// What `auto` plans with; empty: F, I and W take 1 and transfers nothing.
  Costs costs = {};
  /// The most microbatches whose activations a rank may keep at once, counted
  /// in virtual stages; 0 is the name's own, for `auto` no limit.
  double memory = 0;
  /// The part of a microbatch's activations that W needs after I: so much of
  /// one counts against `memory` from I to W.
  double stash = 1;
};

/// Virtual stages that each rank gets where nobody asks for a number: 2 of
/// interleaved and V-shaped schedules, else 1; also of `auto` and of tables.
int32_t ownVirtualStages(std::string_view name);

/// The table of computing actions alone: F, B, I, W. Legal by `judge`, or an
/// error that names a legal neighbour.
absl::StatusOr<Table> generate(const Wanted &wanted);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_GENERATE_H
