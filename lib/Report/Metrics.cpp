#include "lib/Report/Metrics.h"
#include "lib/Text/JsonHandler.h"
#include "meshwork/Text/Escape.h"
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

namespace meshwork::report {
namespace {
/// Curves of more numbers would make a page that nobody reads: a model with
/// many experts has thousands.
constexpr size_t mostSeries = 256; // of arrays, and as many others
constexpr size_t mostDepth = 8;

/// One line: {"step": 3, "loss": 5.5, "mfu": null, "load": [[4, 5], [6, 3]]}.
class LineHandler : public JsonHandler {
public:
  std::optional<double> step;
  /// By name; of an array "load/1/0", as the files for TensorBoard have it.
  struct Number {
    std::string name;
    std::optional<double> value;
    bool isOfArray;
  };
  std::vector<Number> numbers;

  bool null() { return isValue("null") && add(std::nullopt); }
  bool boolean(bool) { return isValue("a boolean") && pass(); }
  bool string(string_t &) { return isValue("a string") && pass(); }
  bool binary(binary_t &) { return isValue("binary data") && pass(); }
  bool number_integer(number_integer_t number) {
    return isValue("a number") && add(static_cast<double>(number));
  }
  bool number_unsigned(number_unsigned_t number) {
    return isValue("a number") && add(static_cast<double>(number));
  }
  bool number_float(number_float_t number, const string_t &) {
    return isValue("a number") && add(number);
  }
  bool start_object(std::size_t) {
    return !isInside ? isInside = true : expected("an object", "a number");
  }
  bool end_object() { return true; }
  bool start_array(std::size_t) {
    if (!isValue("an array"))
      return false;
    places.push_back(0);
    return places.size() <= mostDepth ||
           fail(absl::StrCat("nests deeper than ", mostDepth));
  }
  bool end_array() {
    places.pop_back();
    return pass();
  }
  bool key(string_t &name) {
    current = std::move(name);
    return keys.insert(current).second ||
           fail(absl::StrCat("has ", quote(current), " twice"));
  }

private:
  bool expected(const char *found, const char *wanted) {
    return fail(absl::StrCat("found ", found,
                             isInside ? " for " + quote(current) : "",
                             ", expected ", wanted));
  }
  bool isValue(const char *found) {
    return isInside || expected(found, "an object");
  }
  /// On to the next place of an array.
  bool pass() {
    if (!places.empty())
      ++places.back();
    return true;
  }
  bool add(std::optional<double> number) {
    if (current == "step")
      return addStep(number);
    if (current != "time")
      numbers.push_back({nameOfPlace(), number, !places.empty()});
    return pass();
  }
  std::string nameOfPlace() const {
    std::string name = current;
    for (uint64_t place : places)
      absl::StrAppend(&name, "/", place);
    return name;
  }
  bool addStep(std::optional<double> number) {
    step = number;
    return (places.empty() && number && *number >= 0 && *number <= 0x1p53 &&
            std::floor(*number) == *number) ||
           fail("has a \"step\" that is no whole number from 0 on");
  }

  bool isInside = false;
  std::string current;
  std::set<std::string> keys;
  std::vector<uint64_t> places; // in the arrays that are open
};

void addPoint(Metrics::Series &series, uint64_t step, double value) {
  bool isLater = series.steps.empty() || step > series.steps.back();
  uint32_t run = series.runs.empty() ? 0 : series.runs.back();
  series.runs.push_back(run + (isLater ? 0 : 1));
  series.steps.push_back(step);
  series.values.push_back(value);
}

/// Lines one after the other.
class Reader {
public:
  absl::Status add(std::string_view line) {
    LineHandler handler;
    if (absl::Status status = parseJson(line, handler); !status.ok())
      return status;
    if (!handler.step)
      return absl::DataLossError(
          "has no \"step\", which each line of meshwork-run --metrics has");
    uint64_t leftOut = 0;
    for (const LineHandler::Number &one : handler.numbers)
      if (Metrics::Series *series = find(one); !series)
        ++leftOut;
      else if (one.value && std::isfinite(*one.value))
        addPoint(*series, static_cast<uint64_t>(*handler.step), *one.value);
      else
        ++series->notFinite;
    metrics.leftOut = std::max(metrics.leftOut, leftOut);
    return absl::OkStatus();
  }

  Metrics metrics;

private:
  /// Null where there are enough; an array leaves room for what is told later.
  Metrics::Series *find(const LineHandler::Number &one) {
    auto known = metrics.series.find(one.name);
    if (known != metrics.series.end())
      return &known->second;
    if (counts[one.isOfArray] == mostSeries)
      return nullptr;
    ++counts[one.isOfArray];
    return &metrics.series[one.name];
  }
  size_t counts[2] = {};
};
} // namespace

absl::StatusOr<Metrics> readMetrics(std::string_view text) {
  Reader reader;
  uint64_t &lines = reader.metrics.lines;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++lines;
    if (absl::Status status = reader.add(line); !status.ok())
      return absl::DataLossError(
          absl::StrCat("line ", lines, " ", status.message()));
  }
  if (lines == 0)
    return absl::DataLossError(
        "is empty, expected the lines that meshwork-run --metrics writes");
  return std::move(reader.metrics);
}

} // namespace meshwork::report
