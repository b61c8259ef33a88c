#include "runtime/selftest/PlanChecks.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/io/IoStatus.h"
#include "runtime/io/OtherProgram.h"
#include "runtime/io/SafeTensors.h"
#include "runtime/machine/Clock.h"
#include "runtime/run/RunOn.h"
#include "runtime/selftest/PlanTexts.h"
#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

namespace meshwork::runtime {
namespace {
constexpr uint64_t steps = 2; // the second has the weights of an update
constexpr size_t tokens = 20000;

std::string contentOf(const std::string &path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(text).str();
}

/// Bytes that no rank needs to be sent.
std::string tokenText() {
  std::string text(tokens, '\0');
  uint32_t state = 1;
  for (char &byte : text) {
    state = state * 1664525 + 1013904223; // Numerical Recipes
    byte = static_cast<char>('a' + (state >> 24) % 26);
  }
  return text;
}

class Checker {
public:
  Checker(Processes &processes, uint32_t ranks, const RunOptions &options,
          const std::string &arch, const ScratchFolder &scratch)
      : processes(processes), ranks(ranks), given(options), arch(arch),
        scratch(scratch) {}

  absl::StatusOr<PlanCheck> check(const PlanText &text);

private:
  absl::Status compile(const PlanText &text);
  absl::Status compileOne(const PlanText &text, bool onOneRank);
  absl::Status share(const absl::Status &compiled);
  RunOptions options(const std::string &name) const;
  absl::Status agreeOnOutputs();
  absl::Status compare(PlanCheck &check) const;
  absl::Status compareFile(const std::string &kind, PlanCheck &check) const;

  Processes &processes;
  uint32_t ranks;
  const RunOptions &given;
  const std::string &arch;
  const ScratchFolder &scratch;
  std::string outputs; // of the first process, which alone writes any
};

absl::Status Checker::compileOne(const PlanText &text, bool onOneRank) {
  std::string compiler;
  MESHWORK_ASSIGN_OR_RETURN(compiler, programHere("meshwork"));
  MESHWORK_RETURN_IF_ERROR(writeWhole(scratch.file("model.json"),
                                      modelText(text.hasExperts, ranks)));
  MESHWORK_RETURN_IF_ERROR(
      writeWhole(scratch.file("spec.toml"),
                 specText(text, ranks, onOneRank, onOneRank ? "" : arch)));
  return runProgram({compiler, "compile", scratch.file("model.json"), "--spec",
                     scratch.file("spec.toml"), "-o",
                     scratch.file(onOneRank ? "one.mwplan" : "all.mwplan")},
                    scratch);
}

absl::Status Checker::compile(const PlanText &text) {
  if (!processes.isFirst())
    return absl::OkStatus();
  auto work = processes.fileWork("it compiles a plan of the self-test");
  MESHWORK_RETURN_IF_ERROR(compileOne(text, false));
  return compileOne(text, true);
}

/// Other hosts may see other files: everyone gets the plan of the first. What
/// went wrong there is an answer on all.
absl::Status Checker::share(const absl::Status &compiled) {
  std::string mine = compiled.ok() ? "" : std::string(compiled.message());
  std::vector<std::string> texts;
  MESHWORK_ASSIGN_OR_RETURN(texts, processes.exchange(mine));
  if (!texts[0].empty())
    return absl::FailedPreconditionError(texts[0]);
  mine = processes.isFirst() ? contentOf(scratch.file("all.mwplan")) : "";
  MESHWORK_ASSIGN_OR_RETURN(texts, processes.exchange(mine));
  if (!processes.isFirst())
    MESHWORK_RETURN_IF_ERROR(writeWhole(scratch.file("all.mwplan"), texts[0]));
  return agreeOnOutputs();
}

/// All ranks of a run are given the same paths to write to.
absl::Status Checker::agreeOnOutputs() {
  std::vector<std::string> texts;
  MESHWORK_ASSIGN_OR_RETURN(texts, processes.exchange(scratch.file("")));
  outputs = texts[0];
  return absl::OkStatus();
}

RunOptions Checker::options(const std::string &name) const {
  RunOptions options;
  options.plan = scratch.file(name + ".mwplan");
  options.data = {scratch.file("tokens")};
  options.tokenizer = "bytes";
  options.steps = steps;
  options.learningRate.rate = 0.1;
  options.save = absl::StrCat(outputs, name, "-weights.safetensors");
  options.saveGradients = absl::StrCat(outputs, name, "-gradients.safetensors");
  options.isQuiet = true;
  options.stop = given.stop;
  options.timeoutSeconds = given.timeoutSeconds;
  options.threads = given.threads;
  options.pin = given.pin;
  options.shareGpu = given.shareGpu && !arch.empty() && name == "all";
  return options;
}

absl::Status Checker::compareFile(const std::string &kind,
                                  PlanCheck &check) const {
  auto open = [&](const std::string &name) {
    return SafeTensorsReader::open(
        scratch.file(absl::StrCat(name, "-", kind, ".safetensors")));
  };
  auto found = open("all"), expected = open("one");
  MESHWORK_RETURN_IF_ERROR(found.status());
  MESHWORK_RETURN_IF_ERROR(expected.status());
  for (const std::string &name : (*expected)->names()) {
    std::vector<float> right((*expected)->find(name)->numElements),
        here(right.size());
    MESHWORK_RETURN_IF_ERROR((*expected)->read(name, absl::MakeSpan(right)));
    MESHWORK_RETURN_IF_ERROR((*found)->read(name, absl::MakeSpan(here)));
    double largest = 1e-30, off = 0;
    for (size_t i = 0; i < right.size(); ++i) {
      largest = std::max<double>(largest, std::abs(right[i]));
      double one = std::abs(double(here[i]) - right[i]);
      off = std::isfinite(one) ? std::max(off, one) : INFINITY;
    }
    if (off / largest >= check.difference) {
      check.difference = off / largest;
      check.tensor = absl::StrCat(kind, " of ", name);
    }
  }
  return absl::OkStatus();
}

/// The first process runs the model alone; the others wait for it.
absl::Status Checker::compare(PlanCheck &check) const {
  if (!processes.isFirst())
    return absl::OkStatus();
  auto work = processes.fileWork("it runs a model of the self-test alone");
  processes.beginPhase(); // all cores are free for it
  Processes alone;
  MESHWORK_RETURN_IF_ERROR(runOn(alone, options("one")));
  MESHWORK_RETURN_IF_ERROR(compareFile("gradients", check));
  return compareFile("weights", check);
}

absl::StatusOr<PlanCheck> Checker::check(const PlanText &text) {
  PlanCheck check{text.name, text.axes, 0, 0, "", ""};
  absl::Status shared = share(compile(text));
  if (absl::IsFailedPrecondition(shared)) { // the same on all
    check.notTried = std::string(shared.message());
    return check;
  }
  MESHWORK_RETURN_IF_ERROR(shared);
  int64_t begin = steadyNs();
  MESHWORK_RETURN_IF_ERROR(runOn(processes, options("all")));
  check.seconds = static_cast<double>(steadyNs() - begin) * 1e-9;
  MESHWORK_RETURN_IF_ERROR(compare(check));
  return check;
}
} // namespace

bool PlanCheck::isRight() const { return difference <= allowedDifference; }

absl::StatusOr<std::vector<PlanCheck>> checkPlans(Processes &processes,
                                                  uint32_t ranks,
                                                  const RunOptions &options,
                                                  const std::string &arch) {
  absl::StatusOr<ScratchFolder> scratch = ScratchFolder::make();
  MESHWORK_RETURN_IF_ERROR(scratch.status());
  MESHWORK_RETURN_IF_ERROR(
      fromIo(writeWhole(scratch->file("tokens"), tokenText())));
  Checker checker(processes, ranks, options, arch, *scratch);
  std::vector<PlanCheck> all;
  for (const PlanText &text : planTexts(ranks)) {
    absl::StatusOr<PlanCheck> check = checker.check(text);
    MESHWORK_RETURN_IF_ERROR(check.status());
    all.push_back(*std::move(check));
  }
  return all;
}

} // namespace meshwork::runtime
