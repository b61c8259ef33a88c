// Plans of the main strategies over all ranks, against the same step on one.
#pragma once

#include "runtime/rank/Processes.h"

namespace meshwork::runtime {

struct PlanCheck {
  std::string name; // "zero-3"
  std::vector<std::string> axes;
  double seconds = 0; // of the run on all ranks
  /// How far a gradient or an updated weight is off, as part of the largest
  /// value of its tensor; of the tensor that is farthest off.
  double difference = 0;
  std::string tensor;
  /// Why there is no answer; "" where there is.
  std::string notTried;
  bool isRight() const;
};

/// Sums run in another order on several ranks, in f32: that is some 1e-6 of a
/// tensor's largest value. What goes astray is off by as much as the value.
inline constexpr double allowedDifference = 1e-4;

/// By all processes; complete on the first one. On GPUs where there are some,
/// against the CPU. Needs the compiler beside this program on the first host.
absl::StatusOr<std::vector<PlanCheck>> checkPlans(Processes &processes,
                                                  uint32_t ranks,
                                                  const RunOptions &options,
                                                  const std::string &arch);

} // namespace meshwork::runtime
