#include "tools/meshwork/driver/Checkpoints.h"

#include <absl/strings/str_cat.h>

#include "runtime/io/IoStatus.h"
#include "tools/meshwork/driver/CheckpointText.h"
#include "tools/meshwork/driver/Files.h"

namespace meshwork::driver {
namespace {
using runtime::Checkpoint;
using runtime::FoundCheckpoint;
using runtime::FoundCheckpoints;
using runtime::Manifest;

/// At least one complete checkpoint.
absl::StatusOr<FoundCheckpoints> findIn(const std::string &folder) {
  if (runtime::hasManifest(folder))
    return FoundCheckpoints{{{0, folder}}, {}, {}};
  auto found = runtime::findCheckpoints(folder);
  if (!found.ok())
    return found.status();
  if (found->all().empty() && found->incomplete.empty())
    return absl::NotFoundError(
        absl::StrCat(quote(folder),
                     ": holds no checkpoint; expected a folder "
                     "of folders like ",
                     runtime::checkpointName(20), ", or one of these, with ",
                     runtime::manifestName));
  return found;
}

absl::Status noneComplete(const std::string &folder,
                          const FoundCheckpoints &found) {
  return absl::DataLossError(
      absl::StrCat(quote(folder), ": holds no complete checkpoint; that of ",
                   found.incomplete.front().path, " was cut off: it has no ",
                   runtime::manifestName));
}

/// What inspect says of the checkpoints of a folder, one after another.
struct Telling {
  bool json;
  std::string text{};
  Json list = Json::array();
  int code = ok;

  void complete(const FoundCheckpoint &found, bool isNewest) {
    auto checkpoint = Checkpoint::open(found.path);
    if (!checkpoint.ok())
      return damaged(found, checkpoint.status());
    const Manifest &manifest = (*checkpoint)->manifest();
    absl::StrAppend(&text, found.path, ": ", manifestSummary(manifest), "\n");
    if (isNewest)
      text += manifestDetails(manifest);
    Json one = {{"path", found.path}, {"complete", true}};
    if (json)
      one.update(manifestJson(manifest));
    list.push_back(std::move(one));
  }
  void damaged(const FoundCheckpoint &found, const absl::Status &why) {
    code = report(runtime::fromIo(why));
    absl::StrAppend(&text, found.path, ": damaged\n");
    list.push_back({{"path", found.path},
                    {"complete", true},
                    {"damage", std::string(why.message())}});
  }
  void incomplete(const FoundCheckpoint &found) {
    absl::StrAppend(&text, found.path, ": incomplete, a save was cut off\n");
    list.push_back({{"path", found.path}, {"complete", false}});
  }
};

absl::StatusOr<std::string> verify(const FoundCheckpoint &found) {
  auto checkpoint = Checkpoint::open(found.path);
  if (!checkpoint.ok())
    return checkpoint.status();
  if (absl::Status damage = (*checkpoint)->verify(); !damage.ok())
    return damage;
  return absl::StrCat(found.path, ": whole, ",
                      manifestSummary((*checkpoint)->manifest()), "\n");
}
} // namespace

absl::StatusOr<std::unique_ptr<Checkpoint>>
openNewest(const std::string &folder) {
  auto found = findIn(folder);
  if (!found.ok())
    return found.status();
  if (found->all().empty())
    return noneComplete(folder, *found);
  return Checkpoint::open(found->all().front().path);
}

int inspectCheckpoints(const std::string &folder, bool json) {
  auto found = findIn(folder);
  if (!found.ok())
    return report(runtime::fromIo(found.status()));
  Telling telling{json};
  std::vector<FoundCheckpoint> all = found->all();
  for (const FoundCheckpoint &one : all)
    telling.complete(one, &one == &all.front());
  for (const FoundCheckpoint &one : found->incomplete)
    telling.incomplete(one);
  constexpr auto replace = Json::error_handler_t::replace;
  int code = writeOut(
      json ? Json{{"checkpoints", telling.list}}.dump(-1, ' ', false, replace) +
                 "\n"
           : printable(telling.text));
  return code == ok ? telling.code : code;
}

int verifyCheckpoints(const std::string &folder) {
  auto found = findIn(folder);
  if (!found.ok())
    return report(runtime::fromIo(found.status()));
  std::vector<FoundCheckpoint> all = found->all();
  int code = all.empty() ? report(noneComplete(folder, *found)) : ok;
  std::string text;
  for (const FoundCheckpoint &one : all) {
    absl::StatusOr<std::string> line = verify(one);
    if (!line.ok())
      code = report(runtime::fromIo(line.status()));
    text += line.ok() ? *line : "";
  }
  for (const FoundCheckpoint &one : found->incomplete)
    absl::StrAppend(&text, one.path,
                    ": passed over, a save was cut off before its ",
                    runtime::manifestName, "\n");
  int written = writeOut(printable(text));
  return written == ok ? code : written;
}

} // namespace meshwork::driver
