#include "lib/Driver/Checkpoints.h"

#include <filesystem>
#include <map>

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <nlohmann/json.hpp>

#include "lib/Driver/Files.h"
#include "lib/Explain/Format.h"
#include "runtime/core/IoStatus.h"

namespace meshwork::driver {
namespace {
using Json = nlohmann::ordered_json;
using runtime::Checkpoint;
using runtime::FoundCheckpoint;
using runtime::FoundCheckpoints;
using runtime::Manifest;
using runtime::StoredBox;
using runtime::StoredFile;
using runtime::StoredState;
using runtime::StoredTensor;

bool isCheckpoint(const std::string &folder) {
  std::error_code none;
  return std::filesystem::exists(
      absl::StrCat(folder, "/", runtime::manifestName), none);
}

/// At least one complete checkpoint.
absl::StatusOr<FoundCheckpoints> findIn(const std::string &folder) {
  if (isCheckpoint(folder))
    return FoundCheckpoints{{{0, folder}}, {}};
  auto found = runtime::findCheckpoints(folder);
  if (!found.ok())
    return found.status();
  if (found->complete.empty() && found->incomplete.empty())
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

uint64_t elementsOf(absl::Span<const int64_t> shape) {
  uint64_t count = 1;
  for (int64_t size : shape)
    count *= static_cast<uint64_t>(size);
  return count;
}

/// A state of all tensors together.
struct StateSum {
  std::string dtype;
  uint64_t tensors = 0, elements = 0;
};

std::map<std::string, StateSum> sumStates(const Manifest &manifest) {
  std::map<std::string, StateSum> sums;
  for (const StoredTensor &tensor : manifest.tensors)
    for (const StoredState &state : tensor.states) {
      StateSum &sum = sums[state.name];
      sum.dtype = state.dtype;
      ++sum.tensors;
      sum.elements += elementsOf(tensor.shape);
    }
  return sums;
}

uint64_t bytesOf(const Manifest &manifest) {
  uint64_t bytes = 0;
  for (const StoredFile &file : manifest.files)
    bytes += file.bytes;
  return bytes;
}

//===-- JSON ----------------------------------------------------------------//

Json statesJson(const Manifest &manifest) {
  Json states = Json::array();
  for (const auto &[name, sum] : sumStates(manifest))
    states.push_back({{"name", name},
                      {"dtype", sum.dtype},
                      {"tensors", sum.tensors},
                      {"elements", sum.elements}});
  return states;
}

Json tensorJson(const StoredTensor &tensor) {
  Json states = Json::array();
  for (const StoredState &state : tensor.states)
    states.push_back({{"name", state.name},
                      {"dtype", state.dtype},
                      {"boxes", state.boxes.size()}});
  return {{"name", tensor.name},
          {"shape", tensor.shape},
          {"file_shape", tensor.fileShape},
          {"states", states}};
}

Json manifestJson(const Manifest &manifest) {
  Json json = {{"producer", manifest.producer},
               {"step", manifest.progress.step},
               {"updates", manifest.progress.updates},
               {"samples", manifest.progress.samples},
               {"bytes", bytesOf(manifest)},
               {"options", Json::object()},
               {"files", Json::array()},
               {"states", statesJson(manifest)},
               {"tensors", Json::array()}};
  for (const auto &[name, value] : manifest.options)
    json["options"][name] = value;
  for (const StoredFile &file : manifest.files)
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}});
  for (const StoredTensor &tensor : manifest.tensors)
    json["tensors"].push_back(tensorJson(tensor));
  return json;
}

//===-- Text ----------------------------------------------------------------//

std::string summary(const Manifest &manifest) {
  return absl::StrFormat(
      "step %d, %d updates, %d samples, %s in %d files", manifest.progress.step,
      manifest.progress.updates, manifest.progress.samples,
      explain::bytesText(bytesOf(manifest)), manifest.files.size());
}

std::string counted(uint64_t count, const char *one, const char *many) {
  return absl::StrCat(count, " ", count == 1 ? one : many);
}

std::string shapeText(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

std::string details(const Manifest &manifest) {
  std::string text = absl::StrCat("written by ", manifest.producer, "\n");
  if (!manifest.options.empty())
    text += "options:";
  for (const auto &[name, value] : manifest.options)
    absl::StrAppend(&text, " ", name, " ", value);
  text += manifest.options.empty() ? "" : "\n";
  for (const auto &[name, sum] : sumStates(manifest))
    absl::StrAppend(&text, "state ", name, ": ", sum.dtype, ", ", sum.elements,
                    " elements in ", counted(sum.tensors, "tensor", "tensors"),
                    "\n");
  for (const StoredTensor &tensor : manifest.tensors) {
    absl::StrAppend(&text, "  ", tensor.name, " ", shapeText(tensor.shape));
    if (tensor.fileShape != tensor.shape)
      absl::StrAppend(&text, " (in files ", shapeText(tensor.fileShape), ")");
    size_t boxes = 0;
    for (const StoredState &state : tensor.states)
      boxes += state.boxes.size();
    absl::StrAppend(&text, ": ",
                    counted(tensor.states.size(), "state", "states"), " in ",
                    counted(boxes, "box", "boxes"), "\n");
  }
  return text;
}

//===-- Commands ------------------------------------------------------------//

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
    absl::StrAppend(&text, found.path, ": ", summary(manifest), "\n");
    if (isNewest)
      text += details(manifest);
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
                      summary((*checkpoint)->manifest()), "\n");
}
} // namespace

absl::StatusOr<std::unique_ptr<Checkpoint>>
openNewest(const std::string &folder) {
  auto found = findIn(folder);
  if (!found.ok())
    return found.status();
  if (found->complete.empty())
    return noneComplete(folder, *found);
  return Checkpoint::open(found->complete.front().path);
}

int inspectCheckpoints(const std::string &folder, bool json) {
  auto found = findIn(folder);
  if (!found.ok())
    return report(runtime::fromIo(found.status()));
  Telling telling{json};
  for (const FoundCheckpoint &one : found->complete)
    telling.complete(one, &one == &found->complete.front());
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
  int code =
      found->complete.empty() ? report(noneComplete(folder, *found)) : ok;
  std::string text;
  for (const FoundCheckpoint &one : found->complete) {
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
