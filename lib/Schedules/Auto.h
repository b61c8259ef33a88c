// The best schedule that a search finds.
#ifndef MESHWORK_LIB_SCHEDULES_AUTO_H
#define MESHWORK_LIB_SCHEDULES_AUTO_H

#include "lib/Schedules/Generate.h"
#include "lib/Schedules/ListScheduler.h"

#include <optional>

namespace meshwork::schedules {

/// Of the named schedules and those of the search that keep at most
/// `wanted.memory` microbatches, the fastest; nothing where none does.
std::optional<Scheduled> searchSchedule(const Wanted &wanted);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_AUTO_H
