// What can be wrong with options by themselves, or with those of this plan.
// invalidArgument: exit code 64.
#pragma once

#include "meshwork/Plan/Plan.h"
#include "meshwork/Runtime/Run.h"
#include "runtime/io/Tokens.h"
#include "runtime/rank/Processes.h"

namespace meshwork::runtime {

absl::Status checkOptions(const RunOptions &options);

/// The number of ranks goes to `ranks`. resourceExhausted where one process
/// would run too many.
absl::Status checkRanks(const plan::Plan &plan, const RunOptions &options,
                        const Processes &processes, uint32_t &ranks);

/// --data-weights, one for each --data; none where it is not given.
absl::StatusOr<std::vector<double>> dataWeights(const RunOptions &options);

/// Masks beside the tokens need a plan that can leave targets out.
absl::Status checkMasks(const plan::Plan &plan, const TokenSource &tokens);

/// --samples documents needs a plan that leaves targets out, as those of
/// padding, and an index.
absl::Status checkSamples(const plan::Plan &plan, const RunOptions &options);

/// What tells documents apart, where the plan wants to know.
absl::StatusOr<DocumentMarks> documentMarks(const plan::Plan &plan,
                                            const RunOptions &options);

} // namespace meshwork::runtime
