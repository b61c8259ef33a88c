#include "runtime/checkpoint/CheckManifest.h"
#include "lib/Plan/StatusMacros.h"
#include "meshwork/Plan/StateNames.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/io/Files.h"
#include "runtime/io/SafeTensorsHeader.h"
#include <absl/container/flat_hash_set.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <algorithm>

namespace meshwork::runtime {

std::vector<int64_t> shapeOf(const StoredTensor &tensor,
                             const StoredState &state) {
  return isNumber(state) ? std::vector<int64_t>() : tensor.shape;
}

plan::FileForm writtenForm(const StoredTensor &tensor) {
  return tensor.files.empty()
             ? plan::wholeForm(tensor.name, tensor.shape, tensor.fileShape)
             : tensor.files;
}

namespace {
template <typename... Parts> absl::Status wrong(const Parts &...parts) {
  return absl::DataLossError(absl::StrCat(parts...));
}

bool isHash(std::string_view text) {
  return text.size() == 32 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

absl::Status checkFile(const StoredFile &file) {
  if (!isPrintableName(file.name) || file.name == "." || file.name == ".." ||
      file.name.find('/') != std::string::npos || file.name == manifestName)
    return wrong("file ", quote(file.name),
                 ": expected the plain name of a file beside the manifest");
  uint64_t count = file.bytes / hashedBytes + (file.bytes % hashedBytes != 0);
  if (file.hashes.size() != count)
    return wrong("file ", quote(file.name), ": has ", file.hashes.size(),
                 " hashes, expected ", count, " for ", file.bytes, " bytes");
  for (const std::string &hash : file.hashes)
    if (!isHash(hash))
      return wrong("file ", quote(file.name), ": has the hash ",
                   quote(hash.substr(0, 40)),
                   ", expected 32 digits of 0-9 and a-f");
  return absl::OkStatus();
}

/// Elements; nothing where a size is 0 or the product does not fit.
std::optional<uint64_t> elementsOf(const std::vector<int64_t> &shape) {
  std::optional<uint64_t> elements = 1;
  for (int64_t size : shape)
    if (elements)
      elements = size == 0
                     ? std::nullopt
                     : checkedMultiply(*elements, static_cast<uint64_t>(size));
  return elements && *elements <= INT64_MAX ? elements : std::nullopt;
}

std::string text(const std::vector<int64_t> &numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ","), "]");
}

bool liesIn(const StoredBox &box, const std::vector<int64_t> &shape) {
  if (box.begin.size() != shape.size() || box.extent.size() != shape.size())
    return false;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (box.extent[dim] < 1 || box.begin[dim] > shape[dim] ||
        box.extent[dim] > shape[dim] - box.begin[dim])
      return false;
  return true;
}

absl::Status checkBox(const Manifest &manifest,
                      const std::vector<int64_t> &shape,
                      const StoredState &state, const StoredBox &box) {
  if (!liesIn(box, shape))
    return wrong("a box of ", text(box.extent), " from ", text(box.begin),
                 " on does not lie in the shape ", text(shape));
  if (box.file >= manifest.files.size())
    return wrong("a box is in file ", box.file, ", there are ",
                 manifest.files.size());
  const StoredFile &file = manifest.files[box.file];
  std::optional<uint64_t> bytes =
      checkedMultiply(*elementsOf(box.extent), *storedWidth(state.dtype));
  if (box.offset > file.bytes || !bytes || *bytes > file.bytes - box.offset)
    return wrong("a box of ", text(box.extent), " from byte ", box.offset,
                 " on does not end in file ", quote(file.name), ", which has ",
                 file.bytes, " bytes");
  if (box.offset % *storedWidth(state.dtype) != 0)
    return wrong("a box begins at byte ", box.offset, ", expected a multiple ",
                 "of the ", *storedWidth(state.dtype), " bytes of an element");
  return absl::OkStatus();
}

absl::Status checkState(const Manifest &manifest, const StoredTensor &tensor,
                        const StoredState &state) {
  bool isName =
      !state.name.empty() &&
      std::all_of(state.name.begin(), state.name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
      });
  if (!isName)
    return wrong("expected a name of lower-case letters, digits and _");
  if (!storedWidth(state.dtype))
    return wrong("has the type ", quote(state.dtype), ", expected F32 or BF16");
  std::vector<int64_t> shape = shapeOf(tensor, state);
  if (shape != tensor.shape && (state.name == plan::weightState ||
                                state.name == plan::roundedWeightState))
    return wrong("is one number, expected the shape ", text(tensor.shape));
  for (const StoredBox &box : state.boxes)
    MESHWORK_RETURN_IF_ERROR(checkBox(manifest, shape, state, box));
  return checkTiling(shape, state.boxes);
}

absl::Status checkStates(const Manifest &manifest, const StoredTensor &tensor) {
  absl::flat_hash_set<std::string_view> names;
  for (const StoredState &state : tensor.states) {
    absl::Status status = checkState(manifest, tensor, state);
    if (status.ok() && !names.insert(state.name).second)
      status = wrong("is there twice");
    if (!status.ok())
      return wrong("state ", quote(state.name), ": ", status.message());
  }
  if (!names.contains("weight"))
    return wrong("lacks the state \"weight\"");
  return absl::OkStatus();
}

absl::Status checkFiles(const StoredTensor &tensor) {
  if (tensor.files.empty())
    return absl::OkStatus();
  for (const plan::FilePieceT &piece : tensor.files)
    if (!isPrintableName(piece.pattern))
      return wrong("expected names of files that are not empty and have no "
                   "control characters");
  return plan::checkForms(tensor.shape, {tensor.files});
}

absl::Status checkTensor(const Manifest &manifest, const StoredTensor &tensor) {
  if (!isPrintableName(tensor.name))
    return wrong("expected a name that is not empty and has no control "
                 "characters");
  std::optional<uint64_t> elements = elementsOf(tensor.shape);
  if (!elements || !checkedMultiply(*elements, sizeof(float)))
    return wrong("has the shape ", text(tensor.shape),
                 ", expected sizes from 1 on whose product fits 63 bits");
  if (elementsOf(tensor.fileShape) != elements)
    return wrong("has the shape ", text(tensor.fileShape),
                 " in files, expected as many elements as in ",
                 text(tensor.shape));
  MESHWORK_RETURN_IF_ERROR(checkFiles(tensor));
  return checkStates(manifest, tensor);
}

/// Names of files meet nowhere, and can be listed.
absl::Status checkFileNames(const Manifest &manifest) {
  std::vector<plan::PieceNames> names;
  int64_t tensors = 0;
  for (const StoredTensor &tensor : manifest.tensors) {
    plan::FileForm form = writtenForm(tensor);
    plan::addNames({form}, names);
    tensors += plan::tensorsOf(form);
    if (tensors > plan::mostTensorsOfModel)
      return wrong("has more than ", plan::mostTensorsOfModel,
                   " tensors in files");
  }
  if (auto same = plan::findSameName(names))
    return wrong("its files ", quote(names[same->one].pattern), " and ",
                 quote(names[same->other].pattern), " may be of the same name");
  return absl::OkStatus();
}

struct Bytes {
  uint32_t file;
  uint64_t begin, end;
  const std::string *tensor;
};

/// No byte is of two boxes.
absl::Status checkBytes(const Manifest &manifest) {
  std::vector<Bytes> all;
  for (const StoredTensor &tensor : manifest.tensors)
    for (const StoredState &state : tensor.states)
      for (const StoredBox &box : state.boxes)
        all.push_back({box.file, box.offset,
                       box.offset + storedBytes(state, box), &tensor.name});
  std::sort(all.begin(), all.end(), [](const Bytes &a, const Bytes &b) {
    return std::pair(a.file, a.begin) < std::pair(b.file, b.begin);
  });
  for (size_t i = 1; i < all.size(); ++i)
    if (all[i].file == all[i - 1].file && all[i].begin < all[i - 1].end)
      return wrong("file ", quote(manifest.files[all[i].file].name), ": byte ",
                   all[i].begin, " is in boxes of tensors ",
                   quote(*all[i - 1].tensor), " and ", quote(*all[i].tensor));
  return absl::OkStatus();
}
} // namespace

std::optional<uint64_t> storedWidth(std::string_view dtype) {
  return dtype == "F32"    ? std::optional<uint64_t>(4)
         : dtype == "BF16" ? std::optional<uint64_t>(2)
                           : std::nullopt;
}

uint64_t storedBytes(const StoredState &state, const StoredBox &box) {
  return *elementsOf(box.extent) * *storedWidth(state.dtype);
}

absl::Status checkManifest(const Manifest &manifest) {
  if (manifest.progress.updates > manifest.progress.step)
    return wrong("has ", manifest.progress.updates, " updates in ",
                 manifest.progress.step, " steps");
  absl::flat_hash_set<std::string_view> files, tensors;
  for (const StoredFile &file : manifest.files) {
    MESHWORK_RETURN_IF_ERROR(checkFile(file));
    if (!files.insert(file.name).second)
      return wrong("has the file ", quote(file.name), " twice");
  }
  for (const StoredTensor &tensor : manifest.tensors) {
    absl::Status status = checkTensor(manifest, tensor);
    if (status.ok() && !tensors.insert(tensor.name).second)
      status = wrong("is there twice");
    if (!status.ok())
      return wrong("tensor ", quote(tensor.name), ": ", status.message());
  }
  MESHWORK_RETURN_IF_ERROR(checkFileNames(manifest));
  return checkBytes(manifest);
}

} // namespace meshwork::runtime
