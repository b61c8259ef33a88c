#include "lib/Report/Metrics.h"
#include "lib/Text/JsonHandler.h"
#include "meshwork/Text/Escape.h"
#include <algorithm>
#include <cmath>
#include <optional>

namespace meshwork::report {
namespace {
/// More are no metrics: a series for each would make a page that none reads.
constexpr size_t mostKeys = 256;

/// One line: {"step": 3, "loss": 5.5, "mfu": null, "run": "..."}.
class LineHandler : public JsonHandler {
public:
  std::optional<double> step;
  std::map<std::string, std::optional<double>> numbers; // nothing: null

  bool null() { return value("null") && add(std::nullopt); }
  bool boolean(bool) { return value("a boolean"); }
  bool string(string_t &) { return value("a string"); }
  bool binary(binary_t &) { return value("binary data"); }
  bool number_integer(number_integer_t number) {
    return value("a number") && add(static_cast<double>(number));
  }
  bool number_unsigned(number_unsigned_t number) {
    return value("a number") && add(static_cast<double>(number));
  }
  bool number_float(number_float_t number, const string_t &) {
    return value("a number") && add(number);
  }
  bool start_object(std::size_t) {
    return !isInside ? isInside = true : expected("an object", "a number");
  }
  bool start_array(std::size_t) {
    return isInside ? expected("a list", "a number")
                    : expected("a list", "an object");
  }
  bool end_object() { return true; }
  bool end_array() { return true; }
  bool key(string_t &name) {
    current = std::move(name);
    if (!keys.emplace(current, true).second)
      return fail(absl::StrCat("has ", quote(current), " twice"));
    return keys.size() <= mostKeys ||
           fail(absl::StrCat("has more than ", mostKeys, " keys"));
  }

private:
  bool expected(const char *found, const char *wanted) {
    return fail(absl::StrCat("found ", found,
                             isInside ? " for " + quote(current) : "",
                             ", expected ", wanted));
  }
  /// A line is an object, and nothing in it has parts.
  bool value(const char *found) {
    return isInside || expected(found, "an object");
  }
  bool add(std::optional<double> number) {
    if (current == "step")
      return addStep(number);
    if (current != "time")
      numbers[current] = number;
    return true;
  }
  bool addStep(std::optional<double> number) {
    step = number;
    return (number && *number >= 0 && *number <= 0x1p53 &&
            std::floor(*number) == *number) ||
           fail("has a \"step\" that is no whole number from 0 on");
  }

  bool isInside = false;
  std::string current;
  std::map<std::string, bool> keys;
};

void addPoint(Metrics::Series &series, uint64_t step, double value) {
  bool isLater = series.steps.empty() || step > series.steps.back();
  uint32_t run = series.runs.empty() ? 0 : series.runs.back();
  series.runs.push_back(run + (isLater ? 0 : 1));
  series.steps.push_back(step);
  series.values.push_back(value);
}

absl::Status addLine(Metrics &metrics, std::string_view line) {
  LineHandler handler;
  if (absl::Status status = parseJson(line, handler); !status.ok())
    return status;
  if (!handler.step)
    return absl::DataLossError(
        "has no \"step\", which each line of meshwork-run --metrics has");
  for (const auto &[key, number] : handler.numbers) {
    Metrics::Series &series = metrics.series[key];
    if (number && std::isfinite(*number))
      addPoint(series, static_cast<uint64_t>(*handler.step), *number);
    else
      ++series.notFinite;
  }
  if (metrics.series.size() > mostKeys)
    return absl::DataLossError(
        absl::StrCat("is where more than ", mostKeys, " keys have been found"));
  return absl::OkStatus();
}
} // namespace

absl::StatusOr<Metrics> readMetrics(std::string_view text) {
  Metrics metrics;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++metrics.lines;
    if (absl::Status status = addLine(metrics, line); !status.ok())
      return absl::DataLossError(
          absl::StrCat("line ", metrics.lines, " ", status.message()));
  }
  if (metrics.lines == 0)
    return absl::DataLossError(
        "is empty, expected the lines that meshwork-run --metrics writes");
  return metrics;
}

} // namespace meshwork::report
