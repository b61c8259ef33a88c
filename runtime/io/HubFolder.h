// Folders as the Hugging Face Hub and its tools leave them, and what to say of
// those that hold no model.
#pragma once

#include <string>

#include <absl/status/statusor.h>

namespace meshwork::runtime {

/// The folder of the model that `path` names. A repository in the Hub's cache
/// (models--ORG--NAME) stands for the snapshot in refs/main, or for its only
/// one. Any other path stands for itself. kDataLoss if there are several
/// snapshots and refs/main names none of them.
absl::StatusOr<std::string> modelFolder(const std::string &path);

/// For `path`, where nothing is: what to do if it is a name on the Hub,
/// "; ..."; "" when it can be none.
std::string hubNameHint(const std::string &path);

/// For a folder without safetensors to read: "; it holds ...", the other
/// weights there and what to do. Empty if none is known.
std::string otherWeightsIn(const std::string &folder);

} // namespace meshwork::runtime
