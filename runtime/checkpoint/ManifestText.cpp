#include "runtime/checkpoint/CheckManifest.h"
#include "runtime/checkpoint/HashedFile.h"
#include "runtime/checkpoint/Manifest.h"
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace meshwork::runtime {
namespace {
std::string quoted(const std::string &text) {
  return nlohmann::json(text).dump(-1, ' ', false,
                                   nlohmann::json::error_handler_t::replace);
}

/// `items` as a list, `separator` between them.
template <typename Items, typename TextOf>
std::string list(const Items &items, const char *separator, TextOf textOf) {
  return absl::StrCat("[",
                      absl::StrJoin(items, separator,
                                    [&](std::string *out, const auto &item) {
                                      out->append(textOf(item));
                                    }),
                      "]");
}

std::string numbers(const std::vector<int64_t> &values) {
  return absl::StrCat("[", absl::StrJoin(values, ","), "]");
}

std::string textOf(const StoredBox &box) {
  return absl::StrCat("[", box.file, ",", box.offset, ",", numbers(box.begin),
                      ",", numbers(box.extent), "]");
}

std::string textOf(const StoredState &state) {
  return absl::StrCat(
      "{\"name\":", quoted(state.name), ",\"dtype\":", quoted(state.dtype),
      ",\"boxes\":",
      list(state.boxes, ",", [](const StoredBox &box) { return textOf(box); }),
      "}");
}

std::string textOf(const plan::FilePieceT &piece) {
  std::vector<int64_t> counted;
  if (piece.counted >= 0)
    counted = {piece.counted, piece.first};
  return absl::StrCat("{\"name\":", quoted(piece.pattern),
                      ",\"counted\":", numbers(counted),
                      ",\"begin\":", numbers(piece.begin),
                      ",\"extent\":", numbers(piece.extent),
                      ",\"shape\":", numbers(piece.shape), "}");
}

/// Nothing where it is one tensor: the form that older releases read.
std::string filesText(const StoredTensor &tensor) {
  if (tensor.files.empty())
    return "";
  return absl::StrCat(
      ",\"files\":", list(tensor.files, ",", [](const plan::FilePieceT &piece) {
        return textOf(piece);
      }));
}

std::string textOf(const StoredTensor &tensor) {
  return absl::StrCat(
      "{\"name\":", quoted(tensor.name), ",\"shape\":", numbers(tensor.shape),
      ",\"file_shape\":", numbers(tensor.fileShape), filesText(tensor),
      ",\"states\":",
      list(tensor.states, ",",
           [](const StoredState &state) { return textOf(state); }),
      "}");
}

std::string textOf(const StoredFile &file) {
  return absl::StrCat("{\"name\":", quoted(file.name),
                      ",\"bytes\":", file.bytes,
                      ",\"hashes\":", list(file.hashes, ",", quoted), "}");
}

std::string textOf(const std::map<std::string, std::string> &options) {
  return absl::StrCat("{",
                      absl::StrJoin(options, ",",
                                    [](std::string *out, const auto &option) {
                                      absl::StrAppend(out, quoted(option.first),
                                                      ":",
                                                      quoted(option.second));
                                    }),
                      "}");
}
} // namespace

static uint64_t versionOf(const Manifest &manifest) {
  bool hasFiles = std::any_of(
      manifest.tensors.begin(), manifest.tensors.end(),
      [](const StoredTensor &tensor) { return !tensor.files.empty(); });
  return hasFiles ? manifestVersion : versionWithoutFiles;
}

std::optional<double> evaluationLoss(const Manifest &manifest) {
  double loss = 0;
  if (!absl::SimpleAtod(manifest.evalLoss, &loss) || !std::isfinite(loss))
    return std::nullopt;
  return loss;
}

std::string manifestText(const Manifest &manifest) {
  std::string text = absl::StrCat(
      "{\"format\":\"meshwork-checkpoint\",\"version\":", versionOf(manifest),
      ",\"producer\":", quoted(manifest.producer),
      ",\n\"step\":", manifest.progress.step,
      ",\"updates\":", manifest.progress.updates,
      ",\"samples\":", manifest.progress.samples,
      manifest.progress.tokens == 0
          ? ""
          : absl::StrCat(",\"tokens\":", manifest.progress.tokens),
      manifest.evalLoss.empty() ? ""
                                : ",\"eval_loss\":" + quoted(manifest.evalLoss),
      ",\n\"options\":", textOf(manifest.options), ",\n\"files\":",
      list(manifest.files, ",",
           [](const StoredFile &file) { return "\n" + textOf(file); }),
      ",\n\"tensors\":",
      list(manifest.tensors, ",",
           [](const StoredTensor &tensor) { return "\n" + textOf(tensor); }),
      ",\n");
  return absl::StrCat(text, "\"xxh3_128\":\"", hashText(text), "\"}\n");
}

} // namespace meshwork::runtime
