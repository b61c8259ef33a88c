#include "lib/Schedules/CostFile.h"

#include "lib/Spec/Document.h"
#include "lib/Spec/TomlFile.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace meshwork::schedules {
namespace {

using spec::Value;

struct Key {
  const char *name;
  std::vector<double> Costs::*times;
  bool isNeeded;
};
constexpr Key keys[] = {{"forward", &Costs::forward, true},
                        {"input_grad", &Costs::inputGrad, true},
                        {"weight_grad", &Costs::weightGrad, true},
                        {"transfer", &Costs::transfer, false}};

// Four lists for more stages than are simulated come nowhere near.
constexpr size_t mostBytes = size_t{4} << 20;
// A file that is no list of times need not be looked at to its end.
constexpr size_t mostDiagnostics = 20;

class Reader {
public:
  Reader(const spec::Document &document, const std::string &filename,
         size_t stages, Diagnostics &diagnostics)
      : document(document), filename(filename), stages(stages),
        diagnostics(diagnostics) {}

  Costs read() {
    Costs costs;
    for (const auto &[path, entry] : document)
      checkKnown(path, entry);
    for (const Key &key : keys) {
      auto found = document.find(key.name);
      if (found != document.end())
        costs.*key.times = timesOf(key, found->second.value);
      else if (key.isNeeded)
        error({filename, 0, 0},
              absl::StrCat(key.name, ": missing, expected ", expected(key)));
      (costs.*key.times).resize(stages, 0);
    }
    return costs;
  }

private:
  void error(const Location &where, std::string message) {
    if (diagnostics.size() < mostDiagnostics)
      diagnostics.push_back({Severity::error, where, std::move(message)});
  }

  void checkKnown(const std::string &path, const spec::Entry &entry) {
    std::vector<std::string> names;
    for (const Key &key : keys)
      names.emplace_back(key.name);
    if (std::find(names.begin(), names.end(), path) == names.end())
      error(entry.key,
            absl::StrCat("unknown key ", path, suggestion(path, names)));
  }

  static bool isTransfer(const Key &key) {
    return key.times == &Costs::transfer;
  }

  std::string expected(const Key &key) const {
    return absl::StrCat("a time from 0 to ", longestTime, ", or a list of ",
                        isTransfer(key)
                            ? absl::StrCat(stages - 1, " (one for each edge)")
                            : absl::StrCat(stages, " (one for each stage)"));
  }

  static bool isTime(const Value &value) {
    return (value.kind == Value::Kind::integer ||
            value.kind == Value::Kind::number) &&
           value.number >= 0 && value.number <= longestTime;
  }

  void refuse(const Key &key, const Value &value) {
    error(value.where, absl::StrCat(key.name, ": found ", value.found(),
                                    ", expected ", expected(key)));
  }

  std::vector<double> timesOf(const Key &key, const Value &value) {
    if (isTime(value))
      return std::vector<double>(stages, value.number);
    if (value.kind != Value::Kind::array) {
      refuse(key, value);
      return {};
    }
    size_t count = value.items.size();
    if (count != stages && !(isTransfer(key) && count + 1 == stages))
      error(value.where, absl::StrCat(key.name, ": found a list of ", count,
                                      ", expected ", expected(key)));
    std::vector<double> times;
    for (const Value &item : value.items) {
      if (!isTime(item))
        refuse(key, item);
      times.push_back(item.number);
    }
    return times;
  }

  const spec::Document &document;
  const std::string &filename;
  size_t stages;
  Diagnostics &diagnostics;
};

} // namespace

CostsResult readCosts(std::string_view text, const std::string &filename,
                      size_t stages) {
  CostsResult result;
  if (text.size() > mostBytes) {
    result.diagnostics.push_back(
        {Severity::error,
         {filename, 0, 0},
         absl::StrCat("is ", text.size(), " bytes, expected costs of at most ",
                      mostBytes)});
    return result;
  }
  spec::Document document =
      spec::readDocument(text, filename, {}, result.diagnostics);
  if (hasErrors(result.diagnostics))
    return result;
  Costs costs = Reader(document, filename, stages, result.diagnostics).read();
  sortByPlace(result.diagnostics);
  if (!hasErrors(result.diagnostics))
    result.costs = std::move(costs);
  return result;
}

Costs unitCosts(size_t stages) {
  std::vector<double> one(stages, 1);
  return {one, one, one, std::vector<double>(stages, 0)};
}

} // namespace meshwork::schedules
