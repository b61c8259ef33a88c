// Is a table legal, and can it hang?
#ifndef MESHWORK_LIB_SCHEDULES_VERDICT_H
#define MESHWORK_LIB_SCHEDULES_VERDICT_H

#include "lib/Schedules/Table.h"

#include "absl/status/status.h"

namespace meshwork::schedules {

struct JudgeOptions {
  /// The most microbatches whose activations a rank may keep at once, counted
  /// in virtual stages; 0: no limit.
  double memory = 0;
  /// The part of a microbatch's activations that W needs after I.
  double stash = 1;
  /// Copies of the buffers that received, unsent and kept values live in, for
  /// each virtual stage; 0: as many as are alive at once in the rank's order,
  /// and more are never taken. An action waits until who had the copy that it
  /// takes is done with it.
  int32_t copies = 0;
  /// A rank's transfers complete one after another in order, as on one stream.
  bool transfersInOrder = false;
};

/// OK, or all that is wrong. Each F must stand before its B or I, and W after
/// I. Each piece of work must be there once, on the rank that holds its stage.
/// Transfers must match, in a table that has any. Parameters must be whole
/// where they are used, and memory within its limit. Then: under rendezvous
/// semantics no rank waits for ever. What waits is shown as the shortest cycle,
/// a table of rank x action.
absl::Status judge(const Table &table, const JudgeOptions &options = {});

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_VERDICT_H
