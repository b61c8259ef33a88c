// What `meshwork-run --trace` wrote of a plan, read back.
#pragma once

#include "absl/status/statusor.h"
#include "meshwork/Plan/Plan.h"
#include <string>
#include <string_view>
#include <vector>

namespace meshwork::explain {

/// One run of an instruction. Times in microseconds.
struct TraceEvent {
  uint64_t step = 0;
  uint32_t rank = 0;
  uint32_t list = 0, microbatch = 0; // the action
  uint32_t instruction = 0;          // in the list
  double begin = 0, end = 0;
  double wait = 0; // of it, for peers to arrive
};

/// The longest trace that is read.
inline constexpr uint64_t maxTraceBytes = uint64_t{1} << 30;

/// All events, in the order of the file. Fails with dataLoss where the text is
/// no trace, or is one of another plan. Each event must be of a rank, an action
/// and an instruction that the plan has.
absl::StatusOr<std::vector<TraceEvent>> readTrace(std::string_view text,
                                                  const plan::Plan &plan);

} // namespace meshwork::explain
