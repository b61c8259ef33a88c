// The rows of OptionTable.h by the heading of `--help` that they stand under.
// An option of a run is a row in one of these files, and a field of RunOptions.
//
// What is not shared may differ where machines do: paths of data and plans,
// threads, time-outs; or is of the first process alone: metrics, profiles,
// lines.
#pragma once

#include "runtime/rank/OptionTable.h"

namespace meshwork::runtime {

#define MESHWORK_FIELD(member)                                                 \
  [](RunOptions &options) -> OptionField { return &options.member; }

struct OptionGroup {
  const char *name;
  absl::Span<const OptionRow> rows;
};

OptionGroup dataOptions();
OptionGroup evaluationOptions();
OptionGroup trainingOptions();
OptionGroup fileOptions();
OptionGroup failureOptions();
OptionGroup machineOptions();
OptionGroup gpuOptions();
OptionGroup toldOptions();

} // namespace meshwork::runtime
