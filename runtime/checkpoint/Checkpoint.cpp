#include "runtime/checkpoint/Checkpoint.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/checkpoint/CheckManifest.h"
#include "runtime/checkpoint/ReadList.h"
#include <absl/cleanup/cleanup.h>
#include <absl/container/flat_hash_map.h>
#include <absl/functional/function_ref.h>
#include <absl/strings/str_cat.h>
#include <algorithm>
#include <filesystem>

namespace meshwork::runtime {
namespace {
/// Of a thousand ranks' boxes of a model of 400 billion parameters.
constexpr uint64_t maxManifestBytes = uint64_t{256} << 20;

template <typename... Parts> absl::Status usage(const Parts &...parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

class FolderCheckpoint final : public Checkpoint {
public:
  FolderCheckpoint(std::string path, Manifest manifest)
      : folder(std::move(path)), held(std::move(manifest)) {}
  absl::Status openFiles();

  const std::string &path() const override { return folder; }
  const Manifest &manifest() const override { return held; }
  const StoredTensor *find(std::string_view name) const override {
    auto found = tensors.find(name);
    return found == tensors.end() ? nullptr : found->second;
  }
  absl::Status readAll(absl::Span<const WantedBox> boxes,
                       OnThreads onThreads) const override;
  absl::StatusOr<std::string> readText(std::string_view file) const override;
  absl::Status verify() const override;

private:
  absl::StatusOr<const StoredState *> get(std::string_view tensor,
                                          std::string_view state) const;
  absl::Status readWhole(
      size_t file,
      absl::FunctionRef<void(const unsigned char *, uint64_t)> take) const;
  std::string holds(size_t file, uint64_t begin, uint64_t end) const;

  std::string folder;
  Manifest held;
  std::vector<CheckedInput> files;
  absl::flat_hash_map<std::string_view, const StoredTensor *> tensors;
  mutable RangeBuffers buffers;
};

absl::Status FolderCheckpoint::openFiles() {
  for (const StoredFile &file : held.files) {
    absl::StatusOr<CheckedInput> input = CheckedInput::open(folder, file);
    MESHWORK_RETURN_IF_ERROR(input.status());
    files.push_back(*std::move(input));
  }
  for (const StoredTensor &tensor : held.tensors)
    tensors[tensor.name] = &tensor;
  return absl::OkStatus();
}

absl::StatusOr<const StoredState *>
FolderCheckpoint::get(std::string_view tensor, std::string_view state) const {
  const StoredTensor *found = find(tensor);
  if (!found)
    return absl::NotFoundError(absl::StrCat(quote(folder), ": there is no ",
                                            "tensor ", quote(tensor)));
  for (const StoredState &one : found->states)
    if (one.name == state)
      return &one;
  return absl::NotFoundError(absl::StrCat(quote(folder), ": tensor ",
                                          quote(tensor), " has no state ",
                                          quote(state)));
}

/// Whether it lies in the tensor.
bool lies(const WantedBox &box, const std::vector<int64_t> &shape) {
  bool isIn =
      box.begin.size() == shape.size() && box.extent.size() == shape.size();
  for (size_t dim = 0; isIn && dim < shape.size(); ++dim)
    isIn = box.begin[dim] >= 0 && box.begin[dim] <= shape[dim] &&
           box.extent[dim] >= 0 &&
           box.extent[dim] <= shape[dim] - box.begin[dim];
  return isIn;
}

absl::Status FolderCheckpoint::readAll(absl::Span<const WantedBox> boxes,
                                       OnThreads onThreads) const {
  ReadList list;
  for (const WantedBox &box : boxes) {
    absl::StatusOr<const StoredState *> found = get(box.tensor, box.state);
    MESHWORK_RETURN_IF_ERROR(found.status());
    if (!lies(box, shapeOf(*find(box.tensor), **found)))
      return usage("tensor ", quote(box.tensor),
                   ": a box that does not lie in it was asked for");
    list.add(box, **found);
  }
  return list.read(files, buffers, onThreads);
}

/// Gives `take` all bytes of a file, one hashed range after the other.
absl::Status FolderCheckpoint::readWhole(
    size_t file,
    absl::FunctionRef<void(const unsigned char *, uint64_t)> take) const {
  const CheckedInput &input = files[file];
  RangeBuffers::Buffer buffer = buffers.take();
  absl::Cleanup giveBack = [&] { buffers.give(std::move(buffer)); };
  for (size_t range = 0; range < input.numRanges(); ++range) {
    uint64_t begin = range * hashedBytes, end = input.endOfRange(range);
    absl::StatusOr<const unsigned char *> bytes =
        input.read(begin, end, buffer.get());
    if (!bytes.ok())
      return absl::Status(
          bytes.status().code(),
          absl::StrCat(bytes.status().message(), holds(file, begin, end)));
    take(*bytes, end - begin);
  }
  return absl::OkStatus();
}

/// "; they hold tensor "wte.weight", state "weight", and 3 other boxes".
std::string FolderCheckpoint::holds(size_t file, uint64_t begin,
                                    uint64_t end) const {
  std::string first;
  size_t count = 0;
  for (const StoredTensor &tensor : held.tensors)
    for (const StoredState &state : tensor.states)
      for (const StoredBox &box : state.boxes)
        if (box.file == file && box.offset < end &&
            begin < box.offset + storedBytes(state, box) && count++ == 0)
          first = absl::StrCat("; they hold tensor ", quote(tensor.name),
                               ", state ", quote(state.name));
  if (count > 1)
    absl::StrAppend(&first, ", and ", count - 1, " other boxes");
  return first;
}

absl::StatusOr<std::string>
FolderCheckpoint::readText(std::string_view name) const {
  for (size_t i = 0; i < files.size(); ++i) {
    if (held.files[i].name != name)
      continue;
    std::string text;
    MESHWORK_RETURN_IF_ERROR(
        readWhole(i, [&](const unsigned char *bytes, uint64_t count) {
          text.append(reinterpret_cast<const char *>(bytes), count);
        }));
    return text;
  }
  return absl::NotFoundError(
      absl::StrCat(quote(folder), ": has no file ", quote(name)));
}

absl::Status FolderCheckpoint::verify() const {
  for (size_t i = 0; i < files.size(); ++i)
    MESHWORK_RETURN_IF_ERROR(
        readWhole(i, [](const unsigned char *, uint64_t) {}));
  return absl::OkStatus();
}

/// What is called like a checkpoint may be anything.
absl::Status checkIsFolder(const std::string &path) {
  std::error_code error;
  std::filesystem::file_status found = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(found))
    return absl::OkStatus();
  std::filesystem::path target = std::filesystem::read_symlink(path, error);
  if (!error && !std::filesystem::exists(found))
    return absl::DataLossError(absl::StrCat(
        quote(path), ": is a symbolic link to ", quote(target.string()),
        ", which cannot be found: bring back what it leads to, or move it "
        "away"));
  if (std::filesystem::exists(found))
    return absl::DataLossError(absl::StrCat(
        quote(path), ": is a file, expected the folder of a checkpoint: move "
                     "it away"));
  return absl::OkStatus(); // the manifest tells
}

absl::StatusOr<Manifest> readManifest(const std::string &folder) {
  absl::StatusOr<InputFile> file =
      InputFile::openInFolder(folder, manifestName);
  if (absl::IsNotFound(file.status()))
    return absl::NotFoundError(
        absl::StrCat(file.status().message(),
                     "; without it a folder is no checkpoint, or the save of "
                     "one was cut off"));
  MESHWORK_RETURN_IF_ERROR(file.status());
  if (file->size() > maxManifestBytes)
    return absl::DataLossError(
        absl::StrCat(quote(file->path()), ": has ", file->size(),
                     " bytes, expected at most ", maxManifestBytes));
  std::string text(file->size(), '\0');
  MESHWORK_RETURN_IF_ERROR(file->readAt(0, text.data(), text.size()));
  absl::StatusOr<Manifest> manifest = parseManifest(text);
  if (!manifest.ok())
    return absl::Status(
        manifest.status().code(),
        absl::StrCat(quote(file->path()), ": ", manifest.status().message()));
  return manifest;
}

std::string nameOf(const std::string &path) {
  std::filesystem::path plain(path);
  return (plain.has_filename() ? plain : plain.parent_path()).filename();
}
} // namespace

absl::Status Checkpoint::read(std::string_view tensor, std::string_view state,
                              absl::Span<const int64_t> begin,
                              absl::Span<const int64_t> extent,
                              absl::Span<float> out) const {
  uint64_t elements = 1;
  for (int64_t size : extent) // Overflow gives a box that does not lie there.
    elements *= static_cast<uint64_t>(size);
  WantedBox box{std::string(tensor),
                std::string(state),
                {begin.begin(), begin.end()},
                {extent.begin(), extent.end()},
                [out](uint64_t first, absl::Span<const float> values) {
                  std::copy(values.begin(), values.end(),
                            out.begin() + static_cast<ptrdiff_t>(first));
                }};
  if (elements != out.size())
    return usage("tensor ", quote(tensor),
                 ": a box that does not lie in it, or is not of ", out.size(),
                 " elements, was asked for");
  return readAll({&box, 1}, [](absl::FunctionRef<void()> work) { work(); });
}

absl::StatusOr<std::unique_ptr<Checkpoint>>
Checkpoint::open(const std::string &path) {
  MESHWORK_RETURN_IF_ERROR(checkIsFolder(path));
  absl::StatusOr<Manifest> manifest = readManifest(path);
  MESHWORK_RETURN_IF_ERROR(manifest.status());
  std::optional<uint64_t> step = stepOfCheckpoint(nameOf(path));
  if (step && *step != manifest->progress.step)
    return absl::DataLossError(absl::StrCat(
        quote(path), ": its manifest is of step ", manifest->progress.step,
        ", expected ", *step, " by the folder's name"));
  auto checkpoint =
      std::make_unique<FolderCheckpoint>(path, *std::move(manifest));
  MESHWORK_RETURN_IF_ERROR(checkpoint->openFiles());
  return checkpoint;
}

} // namespace meshwork::runtime
