#include "tools/meshwork/driver/WriteReport.h"

#include "absl/strings/str_cat.h"
#include "lib/Plan/PlanFile.h"
#include "lib/Report/Report.h"
#include "tools/meshwork/driver/Files.h"
#include "tools/meshwork/driver/Inspect.h"
#include <filesystem>

namespace meshwork::driver {

/// Nothing is written over an input, and what cannot be is told before any
/// work.
static int checkFiles(const ReportOptions &options) {
  int code = checkUses({{"the plan", options.plan},
                        {"--trace", options.trace},
                        {"--metrics", options.metrics},
                        {"--output", options.output, true}});
  return code == ok ? checkOutput(options.output) : code;
}

static std::optional<report::Metrics> readMetrics(const std::string &path,
                                                  int &code) {
  std::optional<std::string> text =
      readFile(path, code, report::maxMetricsBytes);
  if (!text)
    return std::nullopt;
  absl::StatusOr<report::Metrics> metrics = report::readMetrics(*text);
  if (metrics.ok())
    return *std::move(metrics);
  code = report(absl::Status(
      metrics.status().code(),
      absl::StrCat(quote(path), ": ", metrics.status().message())));
  return std::nullopt;
}

int writeReport(const ReportOptions &options) {
  if (int code = checkFiles(options); code != ok)
    return code;
  auto file = plan::PlanFile::open(options.plan);
  if (!file.ok())
    return report(file.status());
  const plan::Plan &plan = (*file)->plan();
  report::Run run{.name =
                      std::filesystem::path(options.plan).filename().string()};
  int code = ok;
  std::optional<explain::Measured> measured;
  if (!options.trace.empty()) {
    if (measured = readMeasured(plan, options.trace, code); !measured)
      return code;
    run.measured = &*measured;
  }
  std::optional<report::Metrics> metrics;
  if (!options.metrics.empty()) {
    if (metrics = readMetrics(options.metrics, code); !metrics)
      return code;
    run.metrics = &*metrics;
  }
  return writeFile(options.output, report::page(plan, run));
}

} // namespace meshwork::driver
