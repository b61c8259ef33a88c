// What a checkpoint holds: tensors of all states of a model as boxes in files,
// and where the run stood. The form on disk is in this folder's README.
//
// Nothing here knows a mesh: a box is a range of each dim of a whole tensor,
// and who wrote it does not matter to who reads it.
#pragma once

#include "absl/status/statusor.h"
#include "lib/Plan/FileForms.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwork::runtime {

/// Bytes that one hash covers, from the start of the file on.
constexpr uint64_t hashedBytes = uint64_t{4} << 20;

/// A file of the checkpoint's folder, by its plain name.
struct StoredFile {
  std::string name;
  uint64_t bytes = 0;
  std::vector<std::string>
      hashes; // XXH3-128 of each hashedBytes, 32 hex digits
};

/// extent[d] elements from begin[d] on of each dim d, row-major and without
/// gaps from byte `offset` of the file on.
struct StoredBox {
  uint32_t file = 0; // Manifest::files
  uint64_t offset = 0;
  std::vector<int64_t> begin, extent;
};

/// The boxes of a state cover the tensor and do not overlap. One number for the
/// whole tensor is a box without dims.
struct StoredState {
  /// One of those in StateNames.h, or as the optimizer names it (Plan.fbs,
  /// State): "first_moment".
  std::string name;
  std::string dtype; // of safetensors: "F32", "BF16"
  std::vector<StoredBox> boxes;
};

struct StoredTensor {
  std::string name;               // of the parameter, as in Hugging Face files
  std::vector<int64_t> shape;     // as the model sees it; boxes are of it
  std::vector<int64_t> fileShape; // the same elements in the shape files have
  std::vector<StoredState> states;
  plan::FileForm files =
      {}; // of what files hold in several tensors; else empty
};

/// Its tensors in files of weights.
plan::FileForm writtenForm(const StoredTensor &tensor);

inline bool isNumber(const StoredState &state) {
  return !state.boxes.empty() && state.boxes.front().begin.empty();
}
/// What the state's boxes are of.
std::vector<int64_t> shapeOf(const StoredTensor &tensor,
                             const StoredState &state);

/// Where the run stood. All count from its first start on, whatever was
/// resumed in between.
struct Progress {
  uint64_t step = 0;    // the next one: so many have ended
  uint64_t updates = 0; // of the weights; steps that were skipped made none
  uint64_t samples = 0; // sequences of the steps that have ended
  /// Tokens of these; in a manifest 0 where all have the length of the last.
  uint64_t tokens = 0;
};

struct Manifest {
  std::string producer; // "meshwork 0.1.0"
  Progress progress;
  /// What an evaluation of these weights found, a decimal number; "": none.
  std::string evalLoss;
  /// Of the run, by their names on the command line and in the spec: what a
  /// run that resumes compares its own with. "--lr" -> "0.001".
  std::map<std::string, std::string> options;
  std::vector<StoredFile> files; // "model.mlir", the plan's model, is one
  std::vector<StoredTensor> tensors;
};

/// A number that is finite; none where the weights were not evaluated, or
/// what is told of it is none.
std::optional<double> evaluationLoss(const Manifest &manifest);

/// JSON, with the hash of itself.
std::string manifestText(const Manifest &manifest);

/// kDataLoss with what was found where; kUnimplemented for a manifest of
/// another version. Everything is checked but what stands in the files: names,
/// sizes, that boxes lie in their files and their tensors, cover them and do
/// not overlap.
absl::StatusOr<Manifest> parseManifest(std::string_view text);

} // namespace meshwork::runtime
