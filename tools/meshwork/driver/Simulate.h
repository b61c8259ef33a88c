// `meshwork simulate`: a plan's step on this machine or that, and a month of
// them.
#pragma once

#include <string>
#include <vector>

namespace meshwork::driver {

struct SimulateOptions {
  std::string plan;
  std::string machine;                // "" for the plan's own
  std::vector<std::string> overrides; // like "nodes.jitter=0.02"
  std::string costs; // a file of seconds of a pipeline's actions; "" for none
  std::string trace; // to write; "" for none, "-" for stdout, alone
  bool json = false;
};

/// Prints to stdout, errors to stderr, and returns the exit code.
int simulatePlan(const SimulateOptions &options);

} // namespace meshwork::driver
