// Tables as text: a line a rank, an action a cell.
//
//   0F0,0F1,0SEND_F0,,0B0      an empty cell says nothing
//   (1F1;1B0)OVERLAP_F_B       start together: F, B, I, W (Action::withNext)
//   (0SEND_F1;0RECV_B0)BATCH   start together: other actions
#ifndef MESHWORK_LIB_SCHEDULES_CSV_H
#define MESHWORK_LIB_SCHEDULES_CSV_H

#include "lib/Schedules/Table.h"

#include "absl/status/statusor.h"

#include <string>
#include <string_view>

namespace meshwork::schedules {

/// `2F0`, `3RECV_B1`. Says nothing of Action::withNext.
std::string text(const Action &action);

/// The CSV of a table; reading it gives the table again.
std::string csv(const Table &table);

/// The most that a file may hold. A table has also at most as many microbatches
/// times stages as it has F, so its size follows from that of the text.
constexpr int32_t maxCsvRanks = 16384, maxCsvStages = 65536,
                  maxCsvMicrobatches = 1 << 20;

/// Reads our spelling and PyTorch's: the long names of kinds such as
/// FULL_BACKWARD, cells in quotes. What PyTorch writes about parameters, as
/// 1UNSHARD and 1REDUCE_GRAD, is passed over, and `note` then says so. The
/// stages' ranks are those that compute them. An error names `name`, line and
/// cell, rank, what was found and what would be legal there; all errors of a
/// file are told at once, up to 20. Whether the order of actions is legal is
/// for `judge`.
absl::StatusOr<Table> parseCsv(std::string_view text, std::string_view name,
                               std::string *note = nullptr);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_CSV_H
