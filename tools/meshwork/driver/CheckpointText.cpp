#include "tools/meshwork/driver/CheckpointText.h"

#include <map>

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include "lib/Explain/Format.h"
#include "meshwork/Text/Counted.h"

namespace meshwork::driver {
namespace {
using runtime::Manifest;
using runtime::StoredFile;
using runtime::StoredState;
using runtime::StoredTensor;

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
      sum.elements += elementsOf(shapeOf(tensor, state));
    }
  return sums;
}

uint64_t bytesOf(const Manifest &manifest) {
  uint64_t bytes = 0;
  for (const StoredFile &file : manifest.files)
    bytes += file.bytes;
  return bytes;
}

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
  Json json = {{"name", tensor.name},
               {"shape", tensor.shape},
               {"file_shape", tensor.fileShape},
               {"states", states}};
  for (const plan::FilePieceT &piece : tensor.files)
    json["files"].push_back({{"first", plan::tensorName(piece, 0)},
                             {"count", plan::tensorsOf(piece)},
                             {"shape", piece.shape}});
  return json;
}

std::string shapeText(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

std::string filesText(const StoredTensor &tensor) {
  std::string text;
  for (const plan::FilePieceT &piece : tensor.files)
    absl::StrAppend(&text, text.empty() ? " (in files " : ", ",
                    plan::namesText(piece), " ", shapeText(piece.shape));
  if (tensor.files.empty() && tensor.fileShape != tensor.shape)
    text = absl::StrCat(" (in files ", shapeText(tensor.fileShape));
  return text.empty() ? text : text + ")";
}
} // namespace

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
  if (std::optional<double> loss = evaluationLoss(manifest))
    json["eval_loss"] = *loss;
  for (const auto &[name, value] : manifest.options)
    json["options"][name] = value;
  for (const StoredFile &file : manifest.files)
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}});
  for (const StoredTensor &tensor : manifest.tensors)
    json["tensors"].push_back(tensorJson(tensor));
  return json;
}

std::string manifestSummary(const Manifest &manifest) {
  std::optional<double> loss = evaluationLoss(manifest);
  return absl::StrFormat(
      "step %d, %d updates, %d samples, %s in %d files%s",
      manifest.progress.step, manifest.progress.updates,
      manifest.progress.samples, explain::bytesText(bytesOf(manifest)),
      manifest.files.size(),
      loss ? absl::StrFormat(", evaluation loss %.6g", *loss) : "");
}

std::string manifestDetails(const Manifest &manifest) {
  std::string text = absl::StrCat("written by ", manifest.producer, "\n");
  if (!manifest.options.empty())
    text += "options:";
  for (const auto &[name, value] : manifest.options)
    absl::StrAppend(&text, " ", name, " ", value);
  text += manifest.options.empty() ? "" : "\n";
  for (const auto &[name, sum] : sumStates(manifest))
    absl::StrAppend(&text, "state ", name, ": ", sum.dtype, ", ", sum.elements,
                    " elements in ", counted(sum.tensors, "tensor"), "\n");
  for (const StoredTensor &tensor : manifest.tensors) {
    absl::StrAppend(&text, "  ", tensor.name, " ", shapeText(tensor.shape),
                    filesText(tensor));
    size_t boxes = 0;
    for (const StoredState &state : tensor.states)
      boxes += state.boxes.size();
    absl::StrAppend(&text, ": ", counted(tensor.states.size(), "state"), " in ",
                    counted(boxes, "box"), "\n");
  }
  return text;
}

} // namespace meshwork::driver
