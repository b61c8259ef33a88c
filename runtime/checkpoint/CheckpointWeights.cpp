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
class CheckpointWeights final : public SafeTensorsReader {
public:
  explicit CheckpointWeights(std::shared_ptr<const Checkpoint> of)
      : checkpoint(std::move(of)) {
    for (const StoredTensor &tensor : checkpoint->manifest().tensors) {
      TensorInfo &info = infos[tensor.name];
      info = {"F32", {}, 1};
      for (int64_t size : tensor.fileShape) {
        info.shape.push_back(static_cast<uint64_t>(size));
        info.numElements *= static_cast<uint64_t>(size);
      }
    }
  }

  const TensorInfo *find(std::string_view name) const override {
    auto found = infos.find(name);
    return found == infos.end() ? nullptr : &found->second;
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
    for (const auto &[name, info] : infos)
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
  std::shared_ptr<const Checkpoint> checkpoint;
  std::map<std::string, TensorInfo, std::less<>> infos;
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
  const TensorInfo *info = find(name);
  if (!info)
    return absl::NotFoundError(absl::StrCat("there is no tensor ", quote(name),
                                            " in ", quote(checkpoint->path())));
  if (first > info->numElements || out.size() > info->numElements - first)
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", quote(name), " has ", info->numElements,
                     " elements, expected ", out.size(), " from ", first));
  const std::vector<int64_t> &shape = checkpoint->find(name)->shape;
  std::vector<int64_t> begin, extent;
  while (!out.empty()) {
    int64_t count = boxFrom(shape, static_cast<int64_t>(first),
                            static_cast<int64_t>(out.size()), begin, extent);
    MESHWORK_RETURN_IF_ERROR(
        checkpoint->read(name, plan::weightState, begin, extent,
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
