#include "runtime/rank/RunSettings.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "meshwork/Text/Escape.h"
#include "runtime/rank/OptionTable.h"
#include <algorithm>

namespace meshwork::runtime {
namespace {
constexpr char contentOfData[] = "content of --data";

constexpr const char *batchKeys[] = {"batch.global", "batch.sequence",
                                     "batch.documents", "batch.positions",
                                     "batch.document_end_loss"};

bool decidesNumbers(const std::string &key) {
  return key.starts_with("precision.") || key.starts_with("optimizer.") ||
         std::find(std::begin(batchKeys), std::end(batchKeys), key) !=
             std::end(batchKeys);
}

/// The plan's spec is as the compiler writes it: a line for each key, below the
/// one of its section.
void addSpec(const std::string &spec, RunSettings &to) {
  std::string section;
  for (const std::string &line :
       std::vector<std::string>(absl::StrSplit(spec, '\n'))) {
    if (line.starts_with('[') && line.ends_with(']'))
      section = line.substr(1, line.size() - 2);
    size_t equals = line.find(" = ");
    if (equals == std::string::npos)
      continue;
    std::string key = absl::StrCat(section, ".", line.substr(0, equals));
    if (decidesNumbers(key))
      to[key] = line.substr(equals + 3);
  }
}

std::string textOf(const RunSettings &settings, const std::string &name) {
  auto found = settings.find(name);
  return found == settings.end() ? "not given" : onOneLine(found->second, 120);
}
} // namespace

RunSettings runSettings(const RunOptions &options, const plan::Plan &plan,
                        const TokenSource *tokens) {
  RunSettings settings;
  for (const OptionRow &row : optionTable()) {
    if (!row.decidesNumbers)
      continue;
    std::string value = optionValue(row, options);
    if (!value.empty())
      settings[row.name] = value;
  }
  // Without a decay they do nothing.
  if (options.learningRate.shape == LearningRate::Shape::constant) {
    settings.erase("--decay-steps");
    settings.erase("--min-lr");
  }
  if (options.learningRate.shape != LearningRate::Shape::warmupStableDecay)
    settings.erase("--stable-steps");
  if (options.heldOut == 0)
    settings.erase("--held-out");
  if (tokens)
    settings[contentOfData] = tokens->identity();
  if (plan.spec())
    addSpec(plan.spec()->str(), settings);
  return settings;
}

std::vector<std::string> changedSettings(const RunSettings &saved,
                                         const RunSettings &now) {
  RunSettings all = saved;
  all.insert(now.begin(), now.end());
  if (!saved.contains(contentOfData) || !now.contains(contentOfData))
    all.erase(contentOfData);
  std::vector<std::string> lines;
  for (const auto &[name, value] : all) {
    std::string before = textOf(saved, name), after = textOf(now, name);
    if (before != after)
      lines.push_back(absl::StrCat(name, " was ", before, ", is ", after));
  }
  return lines;
}

absl::Status checkWindows(const RunSettings &saved, const RunSettings &now) {
  if (textOf(saved, "--order") != "epochs" ||
      textOf(now, "--order") != "epochs")
    return absl::OkStatus();
  for (const char *name : {contentOfData, "--data-weights", "--samples",
                           "--held-out", "batch.sequence", "--seed"})
    if (std::string before = textOf(saved, name), after = textOf(now, name);
        before != after)
      return absl::InvalidArgumentError(absl::StrCat(
          "--order epochs goes on behind the samples that the checkpoint has "
          "seen, but ",
          name, " was ", before, ", is ", after,
          ": some windows would be read twice and others not at all; give what "
          "the run had, or --order random"));
  return absl::OkStatus();
}

} // namespace meshwork::runtime
