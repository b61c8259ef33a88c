// The schedules that are known by name.
#ifndef MESHWORK_LIB_SCHEDULES_NAMED_H
#define MESHWORK_LIB_SCHEDULES_NAMED_H

#include "lib/Schedules/Generate.h"
#include "lib/Schedules/ListScheduler.h"

#include <memory>
#include <vector>

namespace meshwork::schedules {

struct NamedSchedule {
  std::string name;
  /// Of each rank, where nobody asks for a number.
  int32_t virtualStages = 1;
  bool takesAnyNumber = false; // of them; else that one alone
  bool vShaped = false;
  bool splitsBackward = false; // into I and W
  std::unique_ptr<Rule> (*rule)(const Work &work);
};

/// Whether `named` has an order for so many virtual stages of each rank.
inline bool takes(const NamedSchedule &named, int32_t virtualStages) {
  return named.takesAnyNumber || named.virtualStages == virtualStages;
}

/// In the order of their names (lib/Spec/ScheduleNames.h); `auto`, which is
/// searched for, is not among them.
const std::vector<NamedSchedule> &namedSchedules();
/// Null: there is none of this name.
const NamedSchedule *findNamed(std::string_view name);

/// The stages of `ranks` ranks: looped (stage % ranks), or there and back.
std::vector<int32_t> placeStages(int32_t ranks, int32_t virtualStages,
                                 bool vShaped);

/// What `wanted` asks for, on stages placed so; without costs F, I and W take 1
/// and transfers nothing.
Work workOf(const Wanted &wanted, std::vector<int32_t> rankOf);

/// The most microbatches that a rank keeps at once, counted in virtual stages,
/// if `stash` of one is kept from I to W.
double mostAlive(const Table &table, double stash);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_NAMED_H
