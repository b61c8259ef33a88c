// A timeline as text for a terminal: time goes across, ranks go down.
#ifndef MESHWORK_LIB_SCHEDULES_GRID_H
#define MESHWORK_LIB_SCHEDULES_GRID_H

#include "lib/Schedules/Simulate.h"

#include <string>

namespace meshwork::schedules {

struct GridOptions {
  size_t columns = 120; // of a line, at least 40
  size_t rows = 64;     // ranks at most
};

/// The computing actions of each rank. An action is as wide as it is long: with
/// its name where that fits, else `Fff`, as many letters of its kind; a point
/// is idle time. What does not fit is left out, and a note says so.
std::string grid(const Table &table, const Timeline &timeline,
                 const GridOptions &options = {});

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_GRID_H
