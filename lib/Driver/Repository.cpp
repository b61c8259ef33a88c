#include "lib/Driver/Repository.h"

#include <algorithm>
#include <cmath>

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include "runtime/io/OutputFolder.h"
#include "runtime/io/SafeTensors.h"

namespace meshwork::driver {
namespace {
using runtime::StoredTensor;
using runtime::TensorToWrite;

/// Read, checked and written at a time.
constexpr uint64_t sliceElements = uint64_t{4} << 20;
constexpr char stateName[] = "weight";
/// What is at least this rounds to no finite f16.
constexpr float f16End = 65520;

uint64_t elementsOf(const StoredTensor &tensor) {
  uint64_t count = 1;
  for (int64_t size : tensor.shape)
    count *= static_cast<uint64_t>(size);
  return count;
}

/// A box of consecutive elements.
struct Consecutive {
  std::vector<int64_t> begin, extent;
  uint64_t count;
};

/// The largest such box from element `first` on, with at most `most` elements.
Consecutive boxFrom(const std::vector<int64_t> &shape, uint64_t first,
                    uint64_t most) {
  Consecutive box{shape, std::vector<int64_t>(shape.size(), 1), 1};
  uint64_t inner = 1; // elements of all dims behind
  bool isWhole = true;
  for (size_t d = shape.size(); d-- > 0;) {
    auto size = static_cast<uint64_t>(shape[d]);
    uint64_t index = first / inner % size;
    box.begin[d] = static_cast<int64_t>(index);
    uint64_t taken = isWhole ? std::min(size - index, most / inner) : 1;
    taken = std::max<uint64_t>(taken, 1);
    box.extent[d] = static_cast<int64_t>(taken);
    box.count *= taken;
    isWhole &= taken == size;
    inner *= size;
  }
  return box;
}

/// Of a shard: whether all values are finite in the type that is written.
absl::Status checkFit(const std::string &dtype, const StoredTensor &tensor,
                      uint64_t first, absl::Span<const float> values) {
  if (dtype != "F16")
    return absl::OkStatus();
  for (size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i]) && std::fabs(values[i]) >= f16End)
      return absl::InvalidArgumentError(absl::StrFormat(
          "tensor %s: element %d is %g, more than f16 can hold: use --dtype "
          "bf16 or f32",
          quote(tensor.name), first + i, values[i]));
  return absl::OkStatus();
}

absl::Status readSlice(const runtime::Checkpoint &checkpoint,
                       const StoredTensor &tensor, uint64_t first,
                       absl::Span<float> out) {
  absl::Status status;
  for (uint64_t done = 0; status.ok() && done < out.size();) {
    Consecutive box = boxFrom(tensor.shape, first + done, out.size() - done);
    status = checkpoint.read(tensor.name, stateName, box.begin, box.extent,
                             out.subspan(done, box.count));
    done += box.count;
  }
  return status;
}

TensorToWrite write(const runtime::Checkpoint &checkpoint,
                    const StoredTensor &tensor, const Repository &to) {
  TensorToWrite made;
  made.name = to.nameOf(tensor.name);
  made.shape.assign(tensor.fileShape.begin(), tensor.fileShape.end());
  made.dtype = to.dtype;
  made.slice = sliceElements;
  made.produce = [&](uint64_t first, absl::Span<float> out) {
    absl::Status status = readSlice(checkpoint, tensor, first, out);
    return status.ok() ? checkFit(to.dtype, tensor, first, out) : status;
  };
  return made;
}

/// A file of weights.
struct Shard {
  std::vector<TensorToWrite> tensors;
  uint64_t bytes = 0;
};

/// In the model's order; a tensor above the limit has a file of its own.
std::vector<Shard> shardsOf(const runtime::Checkpoint &checkpoint,
                            const Repository &to) {
  std::vector<Shard> shards(1);
  uint64_t width = to.dtype == "F32" ? 4 : 2;
  for (const StoredTensor &tensor : checkpoint.manifest().tensors) {
    uint64_t bytes = elementsOf(tensor) * width;
    bool fits = shards.back().bytes + bytes <= to.maxShardBytes;
    if (!fits && !shards.back().tensors.empty())
      shards.emplace_back();
    shards.back().tensors.push_back(write(checkpoint, tensor, to));
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
writeRepository(const runtime::Checkpoint &checkpoint, const Repository &to) {
  std::vector<Shard> shards = shardsOf(checkpoint, to);
  auto folder = runtime::OutputFolder::create(to.folder);
  if (!folder.ok())
    return folder.status();
  WrittenRepository written{checkpoint.manifest().tensors.size(), shards.size(),
                            0};
  for (const Shard &shard : shards)
    written.bytes += shard.bytes;
  absl::Status status =
      writeFiles(folder->path(), shards, written.bytes, to.config);
  if (status.ok())
    status = folder->commit();
  return status.ok() ? absl::StatusOr<WrittenRepository>(written) : status;
}

} // namespace meshwork::driver
