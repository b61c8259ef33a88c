#include "tools/meshwork/tune/Measure.h"

#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/io/OtherProgram.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <random>

namespace meshwork::tune {
namespace {

constexpr int steps = 6; // the first warms caches, and is not counted

/// Enough for some different windows, of ids that take two bytes.
std::string tokensOf(uint32_t vocabulary, uint64_t sequence) {
  std::mt19937 random(1);
  std::uniform_int_distribution<uint16_t> ids(
      0, static_cast<uint16_t>(std::min(vocabulary, 65536U) - 1));
  std::string bytes;
  for (uint64_t i = 0; i < 16 * sequence + 1; ++i) {
    uint16_t id = ids(random);
    bytes.append(reinterpret_cast<const char *>(&id), sizeof(id));
  }
  return bytes;
}

absl::Status write(const std::string &path, const std::string &content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  return file ? absl::OkStatus()
              : absl::UnavailableError(absl::StrCat("cannot write ", path));
}

/// The median of all steps but the first, by a log of metrics.
absl::StatusOr<double> secondsIn(const std::string &path) {
  std::vector<double> all;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    llvm::Expected<llvm::json::Value> value = llvm::json::parse(line);
    if (!value)
      llvm::consumeError(value.takeError());
    else if (auto *object = value->getAsObject())
      if (std::optional<double> ms = object->getNumber("step_ms"))
        all.push_back(*ms / 1e3);
  }
  if (all.size() < 2)
    return absl::InternalError("the run told of no step");
  std::sort(all.begin() + 1, all.end());
  return all[1 + (all.size() - 1) / 2];
}

class Measuring {
public:
  Measuring(Specs &specs, const runtime::ScratchFolder &folder)
      : specs(specs), folder(folder) {}

  absl::StatusOr<double> secondsOf(const Choice &choice) {
    std::string compiler, launcher;
    MESHWORK_ASSIGN_OR_RETURN(compiler, runtime::programHere("meshwork"));
    MESHWORK_ASSIGN_OR_RETURN(launcher, runtime::programHere("meshwork-run"));
    std::string spec = folder.file("spec.toml"), plan = folder.file("plan"),
                metrics = folder.file("metrics.jsonl");
    MESHWORK_RETURN_IF_ERROR(
        write(spec, specs.textOf(choice, folder.file("."))));
    MESHWORK_RETURN_IF_ERROR(
        runtime::runProgram({compiler, "compile", folder.file("model.mlir"),
                             "--spec", spec, "-o", plan},
                            folder));
    std::remove(metrics.c_str()); // It would be appended to.
    MESHWORK_RETURN_IF_ERROR(runtime::runProgram(
        {launcher, plan, "--data", folder.file("tokens"), "--data-type", "u16",
         "--steps", std::to_string(steps), "--metrics", metrics},
        folder));
    return secondsIn(metrics);
  }

private:
  Specs &specs;
  const runtime::ScratchFolder &folder;
};

/// What did not run comes last.
double orderOf(const Row &row) {
  double measured = row.measured.value_or(0);
  return measured > 0 ? measured : std::numeric_limits<double>::infinity();
}
} // namespace

absl::Status measureBest(Specs &specs, const Facts &facts, size_t top,
                         Found &found) {
  absl::StatusOr<runtime::ScratchFolder> folder =
      runtime::ScratchFolder::make();
  MESHWORK_RETURN_IF_ERROR(folder.status());
  MESHWORK_RETURN_IF_ERROR(write(folder->file("model.mlir"), facts.text));
  MESHWORK_RETURN_IF_ERROR(write(folder->file("tokens"),
                                 tokensOf(facts.vocabulary, specs.sequence())));
  Measuring measuring(specs, *folder);
  size_t count = std::min(top, found.rows.size());
  for (size_t i = 0; i < count; ++i) {
    Row &row = found.rows[i];
    absl::StatusOr<double> seconds = measuring.secondsOf(row.choice);
    row.measured = seconds.value_or(0);
    if (!seconds.ok())
      row.whyUnmeasured = std::string(seconds.status().message());
  }
  auto isFaster = [&](const Row &a, const Row &b) {
    double ofA = orderOf(a), ofB = orderOf(b);
    return ofA != ofB ? ofA < ofB : found.isBetter(a, b);
  };
  std::sort(found.rows.begin(),
            found.rows.begin() + static_cast<std::ptrdiff_t>(count), isFaster);
  return absl::OkStatus();
}

} // namespace meshwork::tune
