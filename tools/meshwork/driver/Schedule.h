// `meshwork schedule`: generates or reads a pipeline's schedule, judges it and
// tells how long it takes.
#pragma once

#include <cstdint>
#include <string>

namespace meshwork::driver {

struct ScheduleOptions {
  std::string source;       // a name, or a CSV file; "-" is stdin
  int32_t stages = 0;       // ranks of the pipeline; 0: as the file says
  int32_t microbatches = 0; // 0: as the file says
  int32_t virtualStages = 0;
  double memory = 0; // microbatches that a rank may keep; 0: no limit
  double stash = 1;  // the part of one that W needs
  std::string costs, csv, svg;
  bool transfers = false; // add SEND and RECV
  bool inOrder = false;   // refuse what hangs where these complete in order
  bool json = false;
};

/// Prints to stdout, errors to stderr; returns the exit code. Writes nothing of
/// a table that is not legal.
int schedule(const ScheduleOptions &options);

} // namespace meshwork::driver
