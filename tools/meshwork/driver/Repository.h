// The weights of a checkpoint as a repository of Hugging Face: config.json,
// model.safetensors or its shards with an index.
#pragma once

#include <functional>

#include "runtime/checkpoint/Checkpoint.h"

namespace meshwork::driver {

struct Repository {
  std::string folder; // absent or empty
  std::string config; // the text of its config.json
  uint64_t maxShardBytes = 0;
  /// The type of a tensor of the checkpoint, as safetensors calls it: "BF16".
  std::function<std::string(const std::string &)> typeOf;
  /// The name that the repository gives a tensor of the checkpoint.
  std::function<std::string(const std::string &)> nameOf;
};

struct WrittenRepository {
  size_t tensors = 0, files = 0; // files of weights
  uint64_t bytes = 0;            // of the tensors
};

/// Writes all or nothing. Needs memory for a part of a tensor. Codes as in
/// Files.h; kInvalidArgument when a value does not fit the type.
absl::StatusOr<WrittenRepository>
writeRepository(std::shared_ptr<const runtime::Checkpoint> checkpoint,
                const Repository &to);

} // namespace meshwork::driver
