// `meshwork report`: a plan, and a run of it, as one HTML page that needs
// nothing else.
//
//   absl::StatusOr<Metrics> metrics = readMetrics(text);
//   absl::StatusOr<std::string> html = report::page(
//       plan, {.name = "model.mwplan", .metrics = &*metrics});
//
// The numbers are those of `explain --json` (lib/Explain), as one JSON object
// within the page; README.md has its keys. Needs a plan that `PlanFile` or
// `checkPlan` has accepted.
#pragma once

#include "absl/status/statusor.h"
#include "lib/Explain/Measured.h"
#include "lib/Report/Metrics.h"
#include <string>

namespace meshwork::report {

struct Run {
  std::string name;                            // the plan's, as a title
  const explain::Measured *measured = nullptr; // of a trace
  const Metrics *metrics = nullptr;
};

/// The page, UTF-8. README.md has its bounds: ranks, microbatches and steps do
/// not make it longer, layers only by the names of their values.
std::string page(const plan::Plan &plan, const Run &run);

} // namespace meshwork::report
