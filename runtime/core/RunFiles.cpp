#include "runtime/core/RunFiles.h"
#include "runtime/core/Checked.h"
#include "runtime/core/IoStatus.h"
#include "runtime/core/Report.h"
#include "runtime/io/Files.h"
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
} // namespace

std::vector<FileUse> filesOfRun(const RunOptions &options,
                                const SafeTensorsReader *weights) {
  std::vector<FileUse> uses = writtenAtEnd(options);
  if (!options.metrics.empty())
    uses.push_back({"--metrics", options.metrics, true});
  uses.push_back({"the plan", options.plan});
  for (const std::string &path : tokenFiles(options.data))
    uses.push_back({"--data", path});
  if (weights)
    for (const std::string &path : weights->paths())
      uses.push_back({"--init", path});
  uses.push_back({"standard output", "/dev/stdout"});
  uses.push_back({"standard error", "/dev/stderr"});
  return uses;
}

absl::StatusOr<std::unique_ptr<LineLog>>
prepareOutputs(const RunOptions &options, const SafeTensorsReader *weights) {
  MESHWORK_RETURN_IF_ERROR(checkFileUses(filesOfRun(options, weights)));
  for (const FileUse &use : writtenAtEnd(options))
    MESHWORK_RETURN_IF_ERROR(fromIo(OutputFile::create(use.path).status()));
  if (options.metrics.empty())
    return nullptr;
  absl::StatusOr<LineLog> log = LineLog::open(options.metrics, metricsBegin);
  MESHWORK_RETURN_IF_ERROR(fromIo(log.status()));
  return std::make_unique<LineLog>(*std::move(log));
}

} // namespace meshwork::runtime
