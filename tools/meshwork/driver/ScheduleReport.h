// What `meshwork schedule` says of a table.
#pragma once

#include "lib/Schedules/Simulate.h"

#include <optional>
#include <string>
#include <vector>

namespace meshwork::driver {

struct ScheduleReport {
  std::string name;
  const schedules::Table &table;
  const schedules::Timeline &timeline;
  /// Whether it also runs where each rank's transfers complete in order;
  /// nothing for a table without transfers.
  std::optional<bool> runsInOrder;
};

/// "zb-v: 4 ranks, 8 virtual stages, 8 microbatches"
std::string titleOf(const ScheduleReport &report);

/// The grid, `columns` wide, and the numbers.
std::string textOf(const ScheduleReport &report, size_t columns);

/// README.md of the folder lists the keys.
std::string jsonOf(const ScheduleReport &report);

/// Of a table that is not legal: the same keys, without numbers, and `errors`.
std::string jsonOf(const schedules::Table &table,
                   const std::vector<std::string> &errors);

} // namespace meshwork::driver
