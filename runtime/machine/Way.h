// The way of one run through a list: where counted repeats end early, past the
// turns that they leave out.
#pragma once

#include "absl/functional/function_ref.h"
#include "runtime/machine/KnownCounts.h"

namespace meshwork::runtime {

/// Whether channels count anew at a place of a list's turns: nothing that was
/// started before is under way.
inline bool countsAnew(const std::vector<plan::Turn> &turns, uint32_t at) {
  return at == 0 || turns[at - 1].isGate();
}

/// Calls `run` for one part of `list` after another, in order, none with a gate
/// in it; nothing is under way in channels in between. `executor` is asked for
/// counts that are not known yet. dataLoss when one is none of those that its
/// repeat may run; the first error ends it.
absl::Status runParts(const RankProgram &program, const ListRun &list,
                      Executor &executor, KnownCounts &known,
                      absl::FunctionRef<absl::Status(const ListRun &)> run);

} // namespace meshwork::runtime
