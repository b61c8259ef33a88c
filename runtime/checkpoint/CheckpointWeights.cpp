#include "runtime/checkpoint/CheckpointWeights.h"
#include "lib/Plan/StatusMacros.h"
#include "meshwork/Plan/StateNames.h"
#include "runtime/io/Files.h"
#include <absl/strings/str_cat.h>
#include <algorithm>
#include <filesystem>
#include <map>

namespace meshwork::runtime {
namespace {
/// A tensor in files, as a region of one of the checkpoint.
struct FileTensor {
  TensorInfo info;
  const StoredTensor *of;
  plan::Block region;
};

class CheckpointWeights final : public SafeTensorsReader {
public:
  explicit CheckpointWeights(std::shared_ptr<const Checkpoint> of)
      : checkpoint(std::move(of)) {
    for (const StoredTensor &tensor : checkpoint->manifest().tensors)
      for (const plan::FilePieceT &piece : writtenForm(tensor))
        for (int64_t i = 0; i < plan::tensorsOf(piece); ++i)
          add(tensor, piece, i);
  }

  const TensorInfo *find(std::string_view name) const override {
    auto found = tensors.find(name);
    return found == tensors.end() ? nullptr : &found->second.info;
  }
  absl::Status read(std::string_view name,
                    absl::Span<float> out) const override {
    const TensorInfo *info = find(name);
    if (info && out.size() != info->numElements)
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", quote(name), " has ", info->numElements,
                       " elements, expected ", out.size()));
    return readRange(name, 0, out);
  }
  absl::Status readRange(std::string_view name, uint64_t first,
                         absl::Span<float> out) const override;
  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (const auto &[name, tensor] : tensors)
      all.push_back(name);
    return all;
  }
  std::vector<std::string> paths() const override {
    std::vector<std::string> all = {
        absl::StrCat(checkpoint->path(), "/", manifestName)};
    for (const StoredFile &file : checkpoint->manifest().files)
      all.push_back(absl::StrCat(checkpoint->path(), "/", file.name));
    return all;
  }

private:
  void add(const StoredTensor &tensor, const plan::FilePieceT &piece,
           int64_t i) {
    plan::Block region = plan::regionOf(piece, i);
    TensorInfo info{"F32",
                    {piece.shape.begin(), piece.shape.end()},
                    static_cast<uint64_t>(plan::elementsOf(region))};
    tensors[plan::tensorName(piece, i)] = {std::move(info), &tensor,
                                           std::move(region)};
  }

  std::shared_ptr<const Checkpoint> checkpoint;
  std::map<std::string, FileTensor, std::less<>> tensors;
};

/// The largest box that begins at element `first`, in row-major order, and
/// holds it and at most `count` - 1 of those that follow. Returns how many it
/// holds.
int64_t boxFrom(const std::vector<int64_t> &shape, int64_t first, int64_t count,
                std::vector<int64_t> &begin, std::vector<int64_t> &extent) {
  begin.assign(shape.size(), 0);
  extent.assign(shape.size(), 1);
  int64_t inner = 1; // elements below one index of the dim
  bool grows = true;
  for (size_t dim = shape.size(); dim-- > 0;) {
    begin[dim] = first / inner % shape[dim];
    if (grows) {
      extent[dim] = std::min(shape[dim] - begin[dim], count / inner);
      grows = extent[dim] == shape[dim] && count / inner > shape[dim];
    }
    inner *= shape[dim];
  }
  int64_t elements = 1;
  for (int64_t size : extent)
    elements *= size;
  return elements;
}

absl::Status CheckpointWeights::readRange(std::string_view name, uint64_t first,
                                          absl::Span<float> out) const {
  auto found = tensors.find(name);
  if (found == tensors.end())
    return absl::NotFoundError(absl::StrCat("there is no tensor ", quote(name),
                                            " in ", quote(checkpoint->path())));
  const auto &[info, of, region] = found->second;
  if (first > info.numElements || out.size() > info.numElements - first)
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", quote(name), " has ", info.numElements,
                     " elements, expected ", out.size(), " from ", first));
  std::vector<int64_t> begin, extent;
  while (!out.empty()) {
    int64_t count = boxFrom(region.extent, static_cast<int64_t>(first),
                            static_cast<int64_t>(out.size()), begin, extent);
    for (size_t dim = 0; dim < begin.size(); ++dim)
      begin[dim] += region.begin[dim];
    MESHWORK_RETURN_IF_ERROR(
        checkpoint->read(of->name, plan::weightState, begin, extent,
                         out.first(static_cast<size_t>(count))));
    out.remove_prefix(static_cast<size_t>(count));
    first += static_cast<uint64_t>(count);
  }
  return absl::OkStatus();
}
} // namespace

std::optional<std::string> checkpointIn(const std::string &path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored))
    return std::nullopt;
  if (hasManifest(path))
    return path;
  auto found = findCheckpoints(path);
  if (!found.ok())
    return std::nullopt;
  std::vector<FoundCheckpoint> all = found->all();
  return all.empty() ? std::nullopt : std::optional(all.front().path);
}

std::unique_ptr<SafeTensorsReader>
weightsOf(std::shared_ptr<const Checkpoint> checkpoint) {
  return std::make_unique<CheckpointWeights>(std::move(checkpoint));
}

absl::StatusOr<std::unique_ptr<SafeTensorsReader>>
openCheckpointWeights(const std::string &folder) {
  auto checkpoint = Checkpoint::open(folder);
  MESHWORK_RETURN_IF_ERROR(checkpoint.status());
  return weightsOf(*std::move(checkpoint));
}

} // namespace meshwork::runtime
