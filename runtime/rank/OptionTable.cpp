#include "runtime/rank/OptionTable.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/rank/options/Groups.h"

#include <cstdlib>

namespace meshwork::runtime {
namespace {
using Shape = LearningRate::Shape;
using Transport = RunOptions::Transport;

std::vector<OptionRow> rowsOfAll() {
  std::vector<OptionRow> all;
  for (const OptionGroup &group :
       {dataOptions(), evaluationOptions(), trainingOptions(), fileOptions(),
        failureOptions(), machineOptions(), gpuOptions(), toldOptions()})
    for (const OptionRow &row : group.rows) {
      all.push_back(row);
      all.back().group = group.name;
    }
  return all;
}

/// A value as text; empty where it need not be given.
struct ValueText {
  const OptionRow &row;
  const OptionField defaults;

  std::string operator()(const bool *flag) const {
    return *flag == *std::get<bool *>(defaults) ? "" : "given";
  }
  /// Checkpoints of a default that did not exist are of this one.
  std::string operator()(const std::string *text) const {
    return *text == *std::get<std::string *>(defaults) ? "" : *text;
  }
  std::string operator()(const std::vector<std::string> *texts) const {
    return absl::StrJoin(*texts, ", ");
  }
  std::string operator()(const std::optional<uint32_t> *number) const {
    return *number ? absl::StrCat(**number) : "";
  }
  /// In full where six digits do not tell it.
  std::string operator()(const double *number) const {
    std::string text = absl::StrCat(*number);
    return std::strtod(text.c_str(), nullptr) == *number
               ? text
               : absl::StrFormat("%.17g", *number);
  }
  std::string operator()(const Shape *shape) const {
    return choice(static_cast<int>(*shape));
  }
  std::string operator()(const Transport *transport) const {
    return choice(static_cast<int>(*transport));
  }
  template <typename Number> std::string operator()(const Number *value) const {
    return absl::StrCat(*value);
  }
  std::string choice(int value) const {
    for (const OptionChoice &one : row.choices)
      if (one.value == value)
        return one.name;
    return "";
  }
};

/// As it could be given on a command line.
std::string asGiven(const OptionRow &row, const OptionField &field,
                    const std::string &value) {
  if (std::holds_alternative<bool *>(field))
    return row.name;
  const char *mark = std::holds_alternative<std::string *>(field) ? "\"" : "";
  return absl::StrCat(row.name, " ", mark, value, mark);
}
} // namespace

absl::Span<const OptionRow> optionTable() {
  static const std::vector<OptionRow> table = rowsOfAll();
  return table;
}

bool isAllowed(const OptionRow &row, double value) {
  return (value == 0 && !row.isPositive) ||
         (value >= row.lowest && value <= row.highest);
}

std::string allowedNumbers(const OptionRow &row) {
  return absl::StrFormat("%sa number from %.7g to %.7g",
                         row.isPositive ? "" : "0, or ", row.lowest,
                         row.highest);
}

std::string optionValue(const OptionRow &row, const RunOptions &options) {
  RunOptions given = options, defaults;
  return std::visit(ValueText{row, row.field(defaults)}, row.field(given));
}

std::vector<std::string> sharedOptions(const RunOptions &options) {
  RunOptions given = options;
  std::vector<std::string> all;
  for (const OptionRow &row : optionTable()) {
    std::string value = optionValue(row, options);
    if (value.empty() || !(row.isShared || row.isGivenByAll))
      continue;
    all.push_back(row.isShared ? asGiven(row, row.field(given), value)
                               : std::string(row.name));
  }
  for (const std::string &next : options.then)
    all.push_back(absl::StrCat("--then PLAN", next.substr(next.rfind('@'))));
  return all;
}

} // namespace meshwork::runtime
