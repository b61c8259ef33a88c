// A timeline as a picture.
#ifndef MESHWORK_LIB_SCHEDULES_SVG_H
#define MESHWORK_LIB_SCHEDULES_SVG_H

#include "lib/Schedules/Simulate.h"

#include <string>
#include <string_view>

namespace meshwork::schedules {

/// An SVG that needs nothing else: a row for each rank, a colour for each kind
/// of work, a tooltip for each action. `title` is any text. Of a table too
/// large to look at the first ranks are drawn, and a line says so.
std::string svg(const Table &table, const Timeline &timeline,
                std::string_view title);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_SVG_H
