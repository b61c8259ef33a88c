// What decides the numbers that a run computes, beside its model: a checkpoint
// keeps it, and a run that resumes names what has changed.
//
//   manifest.options = runSettings(options, plan);
//   for (const std::string &line : changedSettings(manifest.options, now))
//     std::puts(line.c_str()); // "--lr was 0.001, is 0.0005"
#pragma once

#include "meshwork/Plan/Plan.h"
#include "meshwork/Runtime/Run.h"
#include <map>
#include <string>
#include <vector>

namespace meshwork::runtime {

/// By names on the command line ("--lr") and in the spec ("optimizer.kind").
using RunSettings = std::map<std::string, std::string>;

/// Of `options` as a run uses them: --decay-steps is known. An option that is
/// not given is left out. How ranks share the work is not here: mesh, sharding,
/// microbatches, recompute and overlap change the order of sums alone.
RunSettings runSettings(const RunOptions &options, const plan::Plan &plan);

/// A line for each that differs, in the order of their names.
std::vector<std::string> changedSettings(const RunSettings &saved,
                                         const RunSettings &now);

} // namespace meshwork::runtime
