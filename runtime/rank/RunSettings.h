// The settings that, beside its model, decide the numbers that a run computes.
// A checkpoint keeps them, and a run that resumes names what has changed.
//
//   manifest.options = runSettings(options, plan, tokens);
//   for (const std::string &line : changedSettings(manifest.options, now))
//     std::puts(line.c_str()); // "--lr was 0.001, is 0.0005"
#pragma once

#include "absl/status/status.h"
#include "meshwork/Plan/Plan.h"
#include "meshwork/Runtime/Run.h"
#include "runtime/io/Tokens.h"
#include <map>
#include <string>
#include <vector>

namespace meshwork::runtime {

/// By names on the command line ("--lr") and in the spec ("optimizer.kind").
using RunSettings = std::map<std::string, std::string>;

/// Of `options` as a run uses them: --decay-steps is known. An option that is
/// not given is left out. How ranks share the work is not here: mesh, sharding,
/// microbatches, recompute and overlap change the order of sums alone.
///   tokens  null where nothing is trained; what they are is a setting
RunSettings runSettings(const RunOptions &options, const plan::Plan &plan,
                        const TokenSource *tokens);

/// A line for each that differs, in the order of their names. Checkpoints of
/// earlier releases do not tell the tokens, which are no difference then.
std::vector<std::string> changedSettings(const RunSettings &saved,
                                         const RunSettings &now);

/// invalidArgument where both runs read their windows by epochs, and something
/// has changed by which windows are numbered: going on would then read some
/// twice and others not at all.
absl::Status checkWindows(const RunSettings &saved, const RunSettings &now);

} // namespace meshwork::runtime
