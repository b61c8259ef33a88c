#include "runtime/train/RunFiles.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/Checked.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/io/DataFiles.h"
#include "runtime/io/Files.h"
#include "runtime/io/IoStatus.h"
#include "runtime/io/NewFile.h"
#include "runtime/io/Tokens.h"

namespace meshwork::runtime {
namespace {
/// What appears when the run is over; the metrics grow while it goes on.
std::vector<FileUse> writtenAtEnd(const RunOptions &o) {
  std::vector<FileUse> uses;
  for (const auto &[option, path] :
       {std::pair{"--save", &o.save},
        std::pair{"--save-gradients", &o.saveGradients},
        std::pair{"--trace", &o.trace},
        std::pair{"--profile-json", &o.profileJson}})
    if (!path->empty())
      uses.push_back({option, *path, true});
  return uses;
}

std::vector<FileUse> written(const RunOptions &o) {
  std::vector<FileUse> uses = writtenAtEnd(o);
  uses.push_back({"--metrics", o.metrics, true});
  uses.push_back({"--tensorboard", o.tensorboard, true});
  uses.push_back({"--checkpoint", o.checkpoint, true});
  return uses;
}

/// A checkpoint with a file changed is damaged, whichever run it is of.
absl::Status checkOutsideCheckpoints(const RunOptions &o) {
  for (const FileUse &use : written(o)) {
    std::string target = outputTarget(use.path).value_or(use.path);
    for (const std::string &folder : {folderOf(target), target})
      if (!use.path.empty() && Checkpoint::open(folder).ok())
        return absl::InvalidArgumentError(absl::StrCat(
            use.role, " ", quote(use.path), " would write into the checkpoint ",
            quote(folder), ": name a place outside of it"));
  }
  return absl::OkStatus();
}

std::vector<std::pair<const char *, const std::vector<std::string> *>>
sourcesOf(const RunOptions &o) {
  return {{"--data", &o.data}, {"--eval-data", &o.evalData}};
}

std::vector<FileUse> readFirst(const RunOptions &o) {
  std::vector<FileUse> uses = {{"the plan", o.plan}, {"--init", o.init}};
  for (const std::string &next : o.then)
    uses.push_back({"--then", next.substr(0, next.rfind('@'))});
  for (const auto &[option, paths] : sourcesOf(o))
    for (const std::string &path : *paths)
      uses.push_back({option, path});
  return uses;
}
} // namespace

absl::Status checkFileNames(const RunOptions &options) {
  for (const FileUse &use : written(options))
    if (use.path == "-")
      return absl::InvalidArgumentError(absl::StrCat(
          use.role, " \"-\": stdout has the progress of the run, name a file "
                    "or a pipe (a file of that name is \"./-\")"));
  for (const FileUse &use : readFirst(options))
    if (use.path == "-")
      return absl::InvalidArgumentError(
          absl::StrCat(use.role, " \"-\": stdin is not read, name a file (one "
                                 "of that name is \"./-\")"));
  return absl::OkStatus();
}

std::vector<FileUse> filesOfRun(const RunOptions &options,
                                const SafeTensorsReader *weights) {
  std::vector<FileUse> uses = written(options);
  for (const FileUse &use : readFirst(options))
    uses.push_back(use);
  for (const auto &[option, sources] : sourcesOf(options))
    for (const std::string &source : *sources) {
      auto files = dataFiles(source, !options.tokenizer.empty());
      for (const std::string &file :
           files.ok() ? *files : std::vector<std::string>{source})
        for (const std::string &path : tokenFiles(file))
          uses.push_back({option, path});
    }
  if (weights)
    for (const std::string &path : weights->paths())
      uses.push_back({"--init", path});
  uses.push_back({"standard output", "/dev/stdout"});
  uses.push_back({"standard error", "/dev/stderr"});
  return uses;
}

absl::Status checkOutputs(const RunOptions &options,
                          const SafeTensorsReader *weights) {
  MESHWORK_RETURN_IF_ERROR(checkFileUses(filesOfRun(options, weights)));
  MESHWORK_RETURN_IF_ERROR(checkOutsideCheckpoints(options));
  for (const FileUse &use : writtenAtEnd(options))
    MESHWORK_RETURN_IF_ERROR(fromIo(OutputFile::create(use.path).status()));
  return absl::OkStatus();
}

static absl::StatusOr<std::unique_ptr<LineLog>>
openLines(const std::string &path) {
  if (path.empty())
    return nullptr;
  absl::StatusOr<LineLog> log = LineLog::open(path, metricsBegin);
  MESHWORK_RETURN_IF_ERROR(fromIo(log.status()));
  return std::make_unique<LineLog>(*std::move(log));
}

absl::StatusOr<MetricLogs> openMetrics(const RunOptions &options) {
  MetricLogs logs;
  MESHWORK_ASSIGN_OR_RETURN(logs.lines, openLines(options.metrics));
  if (options.tensorboard.empty())
    return logs;
  auto events = EventLog::createIn(options.tensorboard);
  if (!events.ok())
    return fromIo(events.status());
  logs.events = *std::move(events);
  return logs;
}

} // namespace meshwork::runtime
