#include "tools/meshwork/tune/Tune.h"

#include "lib/Explain/Estimate.h"
#include "lib/Explain/Format.h"
#include "meshwork/Text/Counted.h"
#include "runtime/machine/Cpus.h"
#include "tools/meshwork/driver/Files.h"
#include "tools/meshwork/tune/Cache.h"
#include "tools/meshwork/tune/Cost.h"
#include "tools/meshwork/tune/Measure.h"
#include "tools/meshwork/tune/Report.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <filesystem>

namespace meshwork::tune {
namespace {

using driver::ok;
namespace fs = std::filesystem;

class Tuning {
public:
  explicit Tuning(const TuneOptions &options)
      : options(options), specs(options), cache(options.cache) {
    for (uint32_t ranks : options.ranks)
      if (std::find(numbers.begin(), numbers.end(), ranks) == numbers.end())
        numbers.push_back(ranks);
  }

  int run() {
    for (auto step : {&Tuning::checkFiles, &Tuning::readModel})
      if (int code = (this->*step)(); code != ok)
        return code;
    for (uint32_t ranks : numbers) {
      all.emplace_back(ranks, find(ranks));
      if (all.back().second.isInterrupted)
        break;
    }
    int wrong = cache.write(); // before runs that may be interrupted
    for (auto step : {&Tuning::measure, &Tuning::tell})
      if (int code = (this->*step)(); code != ok)
        wrong = code;
    return wrong;
  }

private:
  /// What the first search compiled, the second one finds in the cache. A CPU's
  /// memory is the host's.
  Found find(uint32_t ranks) {
    bool isTried = options.offload == Offload::always;
    Found found = find(ranks, isTried);
    bool mayHelp = options.offload == Offload::automatic &&
                   specs.device() != spec::Device::cpu && found.rows.empty() &&
                   found.nearest && !found.isInterrupted;
    return mayHelp ? find(ranks, true) : found;
  }

  Found find(uint32_t ranks, bool hasHost) {
    return search(specs, facts, *models, axes,
                  {ranks, options.global, options.within,
                   runtime::usableCores(), hasHost},
                  cache);
  }

  /// Of several numbers of ranks, each has a file: best.toml becomes
  /// best-64.toml.
  std::string outputFor(uint32_t ranks) const {
    if (options.output.empty() || numbers.size() == 1)
      return options.output;
    fs::path path(options.output);
    return (path.parent_path() /
            (path.stem().string() + "-" + std::to_string(ranks) +
             path.extension().string()))
        .string();
  }

  int checkFiles() {
    if (int code = readAxes(options.axes, axes); code != ok)
      return code;
    if (options.cache == "-")
      return driver::report(
          absl::InvalidArgumentError("--cache: found \"-\", expected a file, "
                                     "which the next search reads"));
    std::vector<runtime::FileUse> uses = {
        {"the model", driver::modelFile(options.model)}};
    for (uint32_t ranks : numbers)
      if (!options.output.empty())
        uses.push_back({"--output", outputFor(ranks), /*isWritten=*/true});
    if (options.machine.ends_with(".toml"))
      uses.push_back({"--machine", options.machine});
    if (!options.cache.empty())
      uses.push_back({"--cache", options.cache, /*isWritten=*/true});
    if (int code = driver::checkUses(uses); code != ok)
      return code;
    for (uint32_t ranks : numbers)
      if (int code = options.output.empty()
                         ? ok
                         : driver::checkOutput(outputFor(ranks));
          code != ok)
        return code;
    if (int code =
            options.cache.empty() ? ok : driver::checkOutput(options.cache);
        code != ok)
      return code;
    if (int code = cache.read(); code != ok)
      return code;
    return specs.check();
  }

  int readModel() {
    int code = ok;
    std::optional<std::string> text = driver::readModel(options.model, code);
    if (!text)
      return code;
    code = readFacts(*text, driver::modelFile(options.model),
                     specs.ofOneSequence(), facts);
    if (code == ok)
      models.emplace(facts);
    return code;
  }

  int measure() {
    for (auto &[ranks, found] : all)
      if (options.measured > 0 && !found.isInterrupted)
        if (absl::Status status =
                measureBest(specs, facts, options.measured, found);
            !status.ok())
          return driver::report(status);
    return ok;
  }

  int tell() {
    std::string text;
    if (options.json)
      text = jsonOf(all);
    for (const auto &[ranks, found] : all)
      if (!options.json)
        text += textOf(found, {ranks, options.within});
    if (numbers.size() > 1 && !options.json)
      text += scalingText(all);
    int code = driver::writeOut(text);
    for (const auto &[ranks, found] : all) {
      warnOfUnused(ranks, found);
      if (int wrong = write(ranks, found); code == ok)
        code = wrong;
    }
    return code;
  }

  static void warnOfUnused(uint32_t ranks, const Found &found) {
    for (const auto &[key, why] : found.unused)
      llvm::errs() << "meshwork: warning: " << counted(ranks, "rank")
                   << ": --fixed changes nothing: " << why << "\n";
  }

  int write(uint32_t ranks, const Found &found) {
    if (found.rows.empty()) {
      llvm::errs() << "meshwork: error: " << counted(ranks, "rank") << ": "
                   << whyNone(found) << "\n";
      return driver::badSpec;
    }
    if (options.output.empty())
      return ok;
    const Costed &best = found.rows[0].costed;
    std::string path = outputFor(ranks);
    std::string text =
        "# By meshwork tune: " + explain::timeText(best.seconds) + " a step, " +
        explain::bytesText(best.bytes) + " a rank.\n" +
        specs.textOf(found.rows[0].choice,
                     fs::path(path).parent_path().string());
    return driver::writeFile(path, text);
  }

  const TuneOptions &options;
  std::vector<uint32_t> numbers; // of ranks, each once
  Specs specs;
  AxisSizes axes;
  Facts facts;
  std::optional<Models> models; // of the facts
  Cache cache;
  std::vector<std::pair<uint32_t, Found>> all;
};
} // namespace

int tune(const TuneOptions &options) { return Tuning(options).run(); }

} // namespace meshwork::tune
