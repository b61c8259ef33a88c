// `meshwork report`: a plan and its run as one HTML page.
#pragma once

#include <string>

namespace meshwork::driver {

struct ReportOptions {
  std::string plan, output;
  std::string trace, metrics; // of a run of the plan; "" for none
};

/// Errors to stderr; returns the exit code.
int writeReport(const ReportOptions &options);

} // namespace meshwork::driver
