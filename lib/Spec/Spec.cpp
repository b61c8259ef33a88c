#include "lib/Spec/Spec.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "lib/Spec/Document.h"
#include "lib/Spec/Keys.h"
#include "lib/Spec/TomlFile.h"
#include "lib/Spec/Unknown.h"
#include "lib/Spec/Validate.h"

namespace meshwork::spec {
namespace {

Diagnostic errorAt(const Location &where, std::string message) {
  return {Severity::error, where, std::move(message)};
}

/// Errors of a value that the key does not take.
void refuse(const Key &key, const Value &value, Diagnostics &diagnostics) {
  std::vector<Mistake> mistakes;
  if (key.mistakes)
    mistakes = key.mistakes(value);
  if (mistakes.empty())
    mistakes.push_back({value.where, "found " + value.found() + ", expected " +
                                         key.expected +
                                         hintOfChoice(key, value)});
  for (const Mistake &mistake : mistakes)
    diagnostics.push_back(
        errorAt(mistake.where, key.path() + ": " + mistake.text));
}

/// False when the key has no value that other keys can be compared with.
bool readKey(const Key &key, const std::string &filename,
             const Document &document, Spec &spec, Diagnostics &diagnostics) {
  auto entry = document.find(key.path());
  if (entry == document.end()) {
    if (key.required)
      diagnostics.push_back(
          errorAt({filename, 0, 0},
                  key.path() + ": missing, expected " + key.expected));
    return !key.required;
  }
  const Value &value = entry->second.value;
  if (!key.read(value, spec)) {
    refuse(key, value, diagnostics);
    return false;
  }
  std::string instead = key.refusal ? key.refusal(value) : "";
  if (!instead.empty())
    diagnostics.push_back(
        errorAt(value.where, key.path() + ": not supported by this version: " +
                                 value.found() + "; " + instead));
  return instead.empty();
}

/// `printOne` gives the comment of a key.
std::string printKeys(const Spec &spec,
                      const std::function<std::string(const Key &)> &comment) {
  std::string text, section;
  for (const Key &key : allKeys()) {
    std::optional<std::string> value =
        key.print ? key.print(spec) : std::nullopt;
    if (!value)
      continue;
    if (section != key.section)
      text += (section.empty() ? "[" : "\n[") + key.section + "]\n";
    section = key.section;
    text += key.name + " = " + *value + comment(key) + "\n";
  }
  return text;
}

} // namespace

std::vector<std::string> Zero::gatheredOnce() const {
  std::vector<std::string> once = inner.empty() ? inner : axes;
  for (const std::string &axis : inner)
    std::erase(once, axis);
  return once;
}

bool Zero::hasChoice() const {
  return (stage == 3 && gathered == Gathered::byCost) ||
         (stage >= 2 && reduce == Reduce::byCost);
}

bool Spec::splits(const std::string &dim) const {
  for (const ShardRule &rule : shard)
    for (const Axis &axis : mesh)
      if (rule.dim == dim && axis.size > 1 &&
          std::find(rule.axes.begin(), rule.axes.end(), axis.name) !=
              rule.axes.end())
        return true;
  return false;
}

std::vector<std::string> Spec::exchangedAxes() const {
  std::vector<std::string> axes;
  if (context != Context::ulysses)
    for (const AxisContext &one : contextOfAxis)
      if (one.method == Context::ulysses)
        axes.push_back(one.axis);
  return axes;
}

uint64_t Spec::ringRanks() const {
  const std::vector<std::string> exchanged = exchangedAxes();
  auto has = [](const std::vector<std::string> &axes, const Axis &axis) {
    return std::find(axes.begin(), axes.end(), axis.name) != axes.end();
  };
  uint64_t ranks = 1;
  for (const ShardRule &rule : shard)
    for (const Axis &axis : mesh)
      if (rule.dim == "sequence" && has(rule.axes, axis) &&
          !has(exchanged, axis))
        ranks *= axis.size;
  return ranks;
}

uint32_t Spec::stageRanks() const {
  for (const Axis &axis : mesh)
    if (axis.name == pipeline.axis)
      return axis.size;
  return 1;
}

uint32_t Spec::numRanks() const {
  uint32_t ranks = 1;
  for (const Axis &axis : mesh)
    ranks *= axis.size;
  return ranks;
}

uint32_t Spec::dataParallel() const {
  uint32_t ranks = 1;
  for (const ShardRule &rule : shard)
    for (const Axis &axis : mesh)
      if (rule.dim == "batch" && std::find(rule.axes.begin(), rule.axes.end(),
                                           axis.name) != rule.axes.end())
        ranks *= axis.size;
  return ranks;
}

uint32_t Spec::microbatches() const {
  return batch.micro == 0 ? 0 : batch.global / (batch.micro * dataParallel());
}

/// Of one microbatch, casts right before the products keep nothing. ZeRO-3 then
/// gathers 8 bits instead of 16.
bool Spec::castsWeightsPerStep() const {
  bool isUseful = microbatches() > 1 || zero.stage == 3;
  return fp8 && (weightCasts == WeightCasts::byCount
                     ? isUseful
                     : weightCasts == WeightCasts::step);
}

bool Spec::mayOffloadActivations() const {
  return recompute == Recompute::offload ||
         (recompute == Recompute::byBudget && offload.activations);
}

std::map<std::string, std::string> withoutBudget(const Spec &spec) {
  std::map<std::string, std::string> wrong;
  const std::string text =
      "\"auto\" takes what fits expect.memory_per_rank, or the "
      "memory.capacity of target.machine, which are missing; give one, like "
      "expect.memory_per_rank = \"20 GiB\", or ";
  if (spec.recompute == Recompute::byBudget)
    wrong["recompute.policy"] =
        text + "choose none, selective, offload or full";
  if (spec.batch.micro == 0)
    wrong["batch.micro"] = text + "a number of sequences";
  if (spec.zero.gathered == Gathered::byCost)
    wrong["zero.gathered"] = text + "choose free, keep or axes of zero.axes";
  if (spec.zero.reduce == Reduce::byCost)
    wrong["zero.reduce"] = text + "choose microbatch or step";
  return wrong;
}

std::string percentOfBf16Sum(uint32_t count) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f %%",
                std::min(100.0, 100.0 * (count - 1.0) / 512));
  return text;
}

Result parse(std::string_view text, const std::string &filename,
             const std::vector<std::string> &overrides) {
  Result result;
  Document document =
      readDocument(text, filename, overrides, result.diagnostics);
  // After a syntax error what is missing is only what was not read.
  if (hasErrors(result.diagnostics))
    return result;
  std::set<std::string> broken;
  for (const auto &[path, entry] : document)
    if (checkUnknown(path, entry, document, result.diagnostics))
      broken.insert(path);
  Spec spec;
  for (const Key &key : allKeys()) {
    if (!readKey(key, filename, document, spec, result.diagnostics))
      broken.insert(key.path());
    auto entry = document.find(key.path());
    result.origins[key.path()] =
        entry == document.end() ? "default" : entry->second.origin;
  }
  completeAndValidate(document, filename, broken, spec, result.diagnostics);
  sortByPlace(result.diagnostics);
  if (!hasErrors(result.diagnostics))
    result.spec = std::move(spec);
  return result;
}

std::string print(const Spec &spec) {
  return printKeys(spec, [](const Key &) { return std::string(); });
}

std::optional<std::string> valueOf(const Spec &spec, const std::string &key) {
  const Key *known = findKey(key);
  return known && known->print ? known->print(spec) : std::nullopt;
}

std::string printWithOrigins(const Result &result) {
  if (!result.spec)
    return "";
  return printKeys(*result.spec, [&](const Key &key) {
    return "  # " + onOneLine(result.origins.at(key.path()));
  });
}

} // namespace meshwork::spec
