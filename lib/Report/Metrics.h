// The metrics of a run, read back: what `meshwork-run --metrics` wrote.
#pragma once

#include "absl/status/statusor.h"
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace meshwork::report {

/// The longest file that is read.
inline constexpr uint64_t maxMetricsBytes = uint64_t{1} << 30;

struct Metrics {
  /// Of a key like "loss": one number for each line that has one.
  struct Series {
    std::vector<uint64_t> steps;
    std::vector<double> values;
    std::vector<uint32_t> runs; // rises where a step is no later than the last
    uint64_t notFinite = 0;     // lines with null
  };
  uint64_t lines = 0;
  std::map<std::string, Series> series; // 256 of arrays, 256 others
  uint64_t leftOut = 0;                 // further numbers of a line, the most
};

/// All numbers but `step` and `time`, those in arrays too ("expert_load/2/0").
/// Fails with dataLoss, which names the line, where one is no object, holds
/// another object, or has no step.
absl::StatusOr<Metrics> readMetrics(std::string_view text);

} // namespace meshwork::report
