// Tables as text: a line a rank, an action a cell.
#ifndef MESHWORK_LIB_SCHEDULES_CSV_H
#define MESHWORK_LIB_SCHEDULES_CSV_H

#include "lib/Schedules/Table.h"

#include "absl/status/statusor.h"

#include <string>
#include <string_view>

namespace meshwork::schedules {

/// `2F0`, `3RECV_B1`, `1GATHER`.
std::string text(const Action &action);

/// The CSV of a table; reading it gives the table again.
std::string csv(const Table &table);

/// Reads our spelling and PyTorch's. The stages' ranks are those that compute
/// them. An error names `name`, line and cell, what was found and what would be
/// legal there; text from outside is never trusted.
absl::StatusOr<Table> parseCsv(std::string_view text, std::string_view name);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_CSV_H
