// `meshwork verify MODEL --spec SPEC --by-running`: whether all ranks of a spec
// together compute what one rank computes.
#pragma once

#include <string>
#include <vector>

namespace meshwork::driver {

struct VerifyRunOptions {
  std::string model; // as of `meshwork compile`
  std::string spec;
  std::vector<std::string> overrides; // section.key=value
};

/// Makes model and spec small, runs them on one rank and on all, and prints how
/// small they are and what was compared. Returns the exit code: 70 where ranks
/// and one rank differ, which is a fault of the compiler; for the rest those of
/// compile().
int verifyByRunning(const VerifyRunOptions &options);

} // namespace meshwork::driver
