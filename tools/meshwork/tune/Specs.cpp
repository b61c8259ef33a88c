#include "tools/meshwork/tune/Specs.h"

#include "lib/Cost/OfSpec.h"
#include "lib/Spec/Keys.h"
#include "lib/Spec/Words.h"
#include "meshwork/Text/Escape.h"
#include "passes/pipelines/SpecFiles.h"
#include "tools/meshwork/driver/Files.h"
#include "tools/meshwork/tune/Fixed.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <filesystem>

namespace meshwork::tune {
namespace {

using driver::ok;

std::string withoutQuotes(const std::string &value) {
  bool isQuoted =
      value.size() >= 2 && value.front() == '"' && value.back() == '"';
  return isQuoted ? value.substr(1, value.size() - 2) : value;
}

/// What an option of its own says, or the search.
const std::map<std::string, std::string> &ownOptions() {
  static const std::map<std::string, std::string> options = {
      {"mesh.axes", "--ranks and --axis"},
      {"batch.global", "--global"},
      {"batch.sequence", "--sequence"},
      {"target.machine", "--machine"}};
  return options;
}

int wrongUse(const std::string &text) {
  return driver::report(absl::InvalidArgumentError(text));
}
} // namespace

int Specs::checkFixed() {
  for (const std::string &one : options.fixed) {
    size_t equals = one.find('=');
    if (equals == std::string::npos)
      return wrongUse("--fixed: found " + quote(one) +
                      ", expected section.key=value, like zero.stage=1");
    std::string key = one.substr(0, equals);
    if (auto own = ownOptions().find(key); own != ownOptions().end())
      return wrongUse("--fixed: found " + quote(key) + ", which " +
                      own->second + " says; leave it out here");
    if (int code = checkFixed(key, one); code != ok)
      return code;
    fixed[key] = withoutQuotes(one.substr(equals + 1));
  }
  return ok;
}

/// A value that no spec takes would have each of them refused.
int Specs::checkFixed(const std::string &key, const std::string &text) {
  const spec::Key *known = spec::findKey(key);
  if (!known) {
    std::vector<std::string> keys;
    for (const spec::Key &one : spec::allKeys())
      keys.push_back(one.path());
    return wrongUse("--fixed: found " + quote(key) +
                    ", expected a key of a spec" + suggestion(key, keys));
  }
  Diagnostics wrong;
  spec::Document document = spec::readDocument("", "the spec", {text}, wrong);
  spec::Spec unused;
  auto entry = document.find(key);
  if (entry != document.end() && known->read(entry->second.value, unused))
    return ok;
  return wrongUse("--fixed: " + key + ": found " +
                  quote(text.substr(key.size() + 1)) + ", expected " +
                  known->expected);
}

/// A machine is of one device, which the spec must name.
int Specs::checkMachine() {
  Diagnostics wrong;
  for (const spec::Word<spec::Device> &word : spec::words<spec::Device>()) {
    machineDevice = word.value;
    spec::Result result = ofOneSequence();
    if (result.spec) {
      ranksOfNode = cost::machineOf(*result.spec).ranksPerNode;
      return ok;
    }
    wrong = result.diagnostics;
  }
  std::erase_if(wrong, [](const Diagnostic &one) {
    return one.severity != Severity::error;
  });
  llvm::errs() << meshwork::textOf(wrong);
  return driver::badSpec;
}

/// Keys of pipelines, say, are none of one rank's.
void Specs::findPlain() {
  for (const std::string &one : options.fixed) {
    plain.push_back(one);
    if (!ofOneSequence().spec)
      plain.pop_back();
  }
}

int Specs::check() {
  for (auto step : {+[](Specs &specs) { return specs.checkFixed(); },
                    +[](Specs &specs) { return specs.checkMachine(); }})
    if (int code = step(*this); code != ok)
      return code;
  findPlain();
  return ok;
}

const std::string *Specs::fixedValue(const std::string &key) const {
  auto found = fixed.find(key);
  return found == fixed.end() ? nullptr : &found->second;
}

bool Specs::leaveOpen() const {
  return std::any_of(fixed.begin(), fixed.end(),
                     [](const auto &one) { return one.second == "auto"; });
}

void Specs::readFixed(spec::Spec &spec) const {
  Diagnostics unused;
  for (const auto &[path, entry] :
       spec::readDocument("", "the spec", options.fixed, unused))
    if (const spec::Key *key = spec::findKey(path))
      key->read(entry.value, spec);
}

std::vector<std::string> Specs::ownOverrides() const {
  return {"batch.global=" + std::to_string(options.global),
          "batch.sequence=" + std::to_string(options.sequence),
          "target.device=" + std::string(spec::wordOf(machineDevice)),
          "target.machine=" + spec::tomlString(options.machine)};
}

Reasons Specs::leftOutOf(const Choice &choice) const {
  Reasons leftOut;
  withMeaningful(settingsWithOwn(choice), options.fixed, &leftOut);
  return leftOut;
}

std::vector<std::string> Specs::settingsWithOwn(const Choice &choice) const {
  std::vector<std::string> overrides = ownOverrides();
  for (const auto &[key, value] : settingsOf(choice))
    overrides.push_back(key + "=" + value);
  return overrides;
}

std::vector<std::string> Specs::overridesOf(const Choice &choice) const {
  return withMeaningful(settingsWithOwn(choice), options.fixed);
}

spec::Result Specs::resolved(const std::vector<std::string> &overrides) {
  spec::Result result = spec::parse("", "the spec", overrides);
  if (!result.spec)
    return result;
  Diagnostics wrong = pipelines::resolveFiles(
      *result.spec, result.origins, "",
      [&](const std::string &path) -> std::optional<std::string> {
        int code = ok;
        auto [known, isNew] = files.try_emplace(path);
        if (isNew)
          known->second = driver::readFile(path, code).value_or("");
        return code == ok ? std::optional(known->second) : std::nullopt;
      });
  bool isWrong = hasErrors(wrong);
  result.diagnostics.insert(result.diagnostics.end(), wrong.begin(),
                            wrong.end());
  if (isWrong)
    result.spec.reset();
  return result;
}

spec::Result Specs::of(const Choice &choice) {
  return resolved(overridesOf(choice));
}

spec::Result Specs::ofBody(const Choice &body, uint32_t global) {
  std::vector<std::string> overrides = ownOverrides();
  for (const auto &[key, value] : settingsOf(body))
    if (body.zeroStage == 3 || !key.starts_with("zero."))
      overrides.push_back(key + "=" + value);
  overrides.push_back("batch.global=" + std::to_string(global));
  std::vector<std::string> some;
  for (const std::string &one : options.fixed)
    if (!one.starts_with("pipeline.") && !one.starts_with("zero.") &&
        !one.starts_with("offload.optimizer="))
      some.push_back(one);
  return resolved(withMeaningful(overrides, some));
}

spec::Result Specs::ofOneSequence() {
  std::vector<std::string> overrides = ownOverrides();
  overrides.insert(overrides.end(), plain.begin(), plain.end());
  overrides.insert(overrides.end(),
                   {"batch.global=1", "batch.micro=1", "mesh.axes=[]"});
  return resolved(overrides);
}

/// A path that was given from the working directory, from `folder`.
static std::string fromFolder(const std::string &machine,
                              const std::string &folder) {
  namespace fs = std::filesystem;
  std::error_code failed;
  if (!machine.ends_with(".toml") || fs::path(machine).is_absolute())
    return machine;
  fs::path path = fs::relative(machine, folder.empty() ? "." : folder, failed);
  return failed || path.empty() ? fs::absolute(machine, failed).string()
                                : path.string();
}

std::string Specs::settledText(const spec::Spec &spec) const {
  std::string text;
  for (const spec::Key &key : spec::allKeys())
    if (std::optional<std::string> value =
            key.print ? key.print(spec) : std::nullopt)
      text += key.path() + " = " + *value + "\n";
  for (const auto &[path, content] : files)
    text += path + ":\n" + content + "\n";
  return text;
}

std::string Specs::textOf(const Choice &choice, const std::string &folder) {
  spec::Result result = spec::parse("", "the spec", overridesOf(choice));
  if (!result.spec)
    return "";
  result.spec->machine = fromFolder(result.spec->machine, folder);
  std::string text, section;
  for (const spec::Key &key : spec::allKeys()) {
    auto origin = result.origins.find(key.path());
    if (origin == result.origins.end() || origin->second == "default" ||
        !key.print)
      continue;
    std::optional<std::string> value = key.print(*result.spec);
    if (!value)
      continue;
    if (key.section != section)
      text += (section.empty() ? "[" : "\n[") + key.section + "]\n";
    section = key.section;
    text += key.name + " = " + *value + "\n";
  }
  return text;
}

} // namespace meshwork::tune
