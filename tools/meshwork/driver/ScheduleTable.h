// The table that `meshwork schedule` is asked about, and what its work takes.
#pragma once

#include "lib/Schedules/Table.h"
#include "tools/meshwork/driver/Schedule.h"

namespace meshwork::driver {

/// Whether the source is the name of a schedule, and no file.
bool isScheduleName(const std::string &source);

/// What is wrong with options of `meshwork schedule` whatever the files hold;
/// prints a message when something is, returns an exit code.
int checkSchedule(const ScheduleOptions &options);

struct PricedTable {
  schedules::Table table;
  schedules::Costs costs;
  double memory = 0; // the limit, counted in the table's virtual stages
};

/// Generates or reads a table, without judging it, and reads its costs. Prints
/// a message when it cannot; returns an exit code.
int makeTable(const ScheduleOptions &options, PricedTable &priced);

/// Reads what actions of so many virtual stages take; without a path F, I and W
/// take 1. Prints a message when it cannot; returns an exit code.
int readCosts(const std::string &path, size_t stages, schedules::Costs &costs);

} // namespace meshwork::driver
