#include "tools/meshwork/driver/Repository.h"

#include <algorithm>
#include <cmath>

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/CheckpointWeights.h"
#include "runtime/io/OutputFolder.h"
#include "runtime/io/SafeTensors.h"

namespace meshwork::driver {
namespace {
using runtime::SafeTensorsReader;
using runtime::StoredTensor;
using runtime::TensorToWrite;

/// Read, checked and written at a time.
constexpr uint64_t sliceElements = uint64_t{4} << 20;
/// What is at least this rounds to no finite f16.
constexpr float f16End = 65520;

/// One tensor of the repository, under the checkpoint's name.
struct Tensor {
  std::string name;
  std::vector<uint64_t> shape;
  uint64_t elements;
};

std::vector<Tensor> tensorsOf(const runtime::Manifest &manifest) {
  std::vector<Tensor> tensors;
  for (const StoredTensor &tensor : manifest.tensors)
    for (const plan::FilePieceT &piece : writtenForm(tensor))
      for (int64_t i = 0; i < plan::tensorsOf(piece); ++i)
        tensors.push_back({plan::tensorName(piece, i),
                           {piece.shape.begin(), piece.shape.end()},
                           static_cast<uint64_t>(
                               plan::elementsOf(plan::regionOf(piece, i)))});
  return tensors;
}

/// Of a shard: whether all values are finite in the type that is written.
absl::Status checkFit(const std::string &dtype, const std::string &tensor,
                      uint64_t first, absl::Span<const float> values) {
  if (dtype != "F16")
    return absl::OkStatus();
  for (size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i]) && std::fabs(values[i]) >= f16End)
      return absl::InvalidArgumentError(absl::StrFormat(
          "tensor %s: element %d is %g, more than f16 can hold: use --dtype "
          "bf16 or f32",
          quote(tensor), first + i, values[i]));
  return absl::OkStatus();
}

TensorToWrite write(const SafeTensorsReader &weights, const Tensor &tensor,
                    const Repository &to) {
  TensorToWrite made;
  made.name = to.nameOf(tensor.name);
  made.shape = tensor.shape;
  made.dtype = to.typeOf(tensor.name);
  made.slice = sliceElements;
  made.produce = [&weights, name = tensor.name,
                  type = made.dtype](uint64_t first, absl::Span<float> out) {
    absl::Status status = weights.readRange(name, first, out);
    return status.ok() ? checkFit(type, name, first, out) : status;
  };
  return made;
}

/// A file of weights.
struct Shard {
  std::vector<TensorToWrite> tensors;
  uint64_t bytes = 0;
};

/// In the model's order; a tensor above the limit has a file of its own.
std::vector<Shard> shardsOf(const std::vector<Tensor> &tensors,
                            const SafeTensorsReader &weights,
                            const Repository &to) {
  std::vector<Shard> shards(1);
  for (const Tensor &tensor : tensors) {
    uint64_t width = to.typeOf(tensor.name) == "F32" ? 4 : 2;
    uint64_t bytes = tensor.elements * width;
    bool fits = shards.back().bytes + bytes <= to.maxShardBytes;
    if (!fits && !shards.back().tensors.empty())
      shards.emplace_back();
    shards.back().tensors.push_back(write(weights, tensor, to));
    shards.back().bytes += bytes;
  }
  return shards;
}

std::string fileName(size_t shard, size_t shards) {
  return shards == 1 ? "model.safetensors"
                     : absl::StrFormat("model-%05d-of-%05d.safetensors",
                                       shard + 1, shards);
}

std::string indexText(const std::vector<Shard> &shards, uint64_t bytes) {
  nlohmann::json index;
  index["metadata"]["total_size"] = bytes;
  for (size_t i = 0; i < shards.size(); ++i)
    for (const TensorToWrite &tensor : shards[i].tensors)
      index["weight_map"][tensor.name] = fileName(i, shards.size());
  return index.dump(2) + "\n";
}
/// All files, into `folder`.
absl::Status writeFiles(const std::string &folder,
                        const std::vector<Shard> &shards, uint64_t bytes,
                        const std::string &config) {
  absl::Status status;
  for (size_t i = 0; status.ok() && i < shards.size(); ++i)
    status = runtime::writeSafeTensors(
        absl::StrCat(folder, "/", fileName(i, shards.size())),
        shards[i].tensors);
  if (status.ok() && shards.size() > 1)
    status = runtime::writeWhole(folder + "/model.safetensors.index.json",
                                 indexText(shards, bytes));
  return status.ok() ? runtime::writeWhole(folder + "/config.json", config)
                     : status;
}
} // namespace

absl::StatusOr<WrittenRepository>
writeRepository(std::shared_ptr<const runtime::Checkpoint> checkpoint,
                const Repository &to) {
  std::vector<Tensor> tensors = tensorsOf(checkpoint->manifest());
  auto weights = runtime::weightsOf(checkpoint);
  std::vector<Shard> shards = shardsOf(tensors, *weights, to);
  auto folder = runtime::OutputFolder::create(to.folder);
  if (!folder.ok())
    return folder.status();
  WrittenRepository written{tensors.size(), shards.size(), 0};
  for (const Shard &shard : shards)
    written.bytes += shard.bytes;
  absl::Status status =
      writeFiles(folder->path(), shards, written.bytes, to.config);
  if (status.ok())
    status = folder->commit();
  return status.ok() ? absl::StatusOr<WrittenRepository>(written) : status;
}

} // namespace meshwork::driver
