// Checkpoints of a folder, and one of them opened for reading.
//
//   auto found = findCheckpoints("run7");
//   auto checkpoint = Checkpoint::open(found->complete.front().path);
//   status = (*checkpoint)->read("wte.weight", "weight", begin, extent, out);
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "runtime/checkpoint/Manifest.h"
#include <functional>
#include <memory>
#include <optional>

namespace meshwork::runtime {

/// "step-0000000020": the folder of a checkpoint in the folder of all.
std::string checkpointName(uint64_t step);
/// The step that such a name tells of.
std::optional<uint64_t> stepOfCheckpoint(const std::string &name);
constexpr char manifestName[] = "manifest.json";
constexpr char modelName[] = "model.mlir";

struct FoundCheckpoint {
  uint64_t step = 0;
  std::string path;
};

struct FoundCheckpoints {
  std::vector<FoundCheckpoint> complete;   // newest first
  std::vector<FoundCheckpoint> incomplete; // no manifest: a save was cut off
  /// Called like one, but no save leaves that: a file, a link that leads to no
  /// checkpoint, a folder that cannot be looked into. Opening it tells why.
  std::vector<FoundCheckpoint> damaged;

  /// Those that are complete and those that are damaged, newest first.
  std::vector<FoundCheckpoint> all() const;
};

/// By names alone: nothing is read. kNotFound when `folder` is not there, or
/// cannot be read.
absl::StatusOr<FoundCheckpoints> findCheckpoints(const std::string &folder);

/// Whether something is called so, also a link that leads nowhere.
bool isThere(const std::string &path);

/// Whether `folder` is one checkpoint, good or not: it has a manifest.
bool hasManifest(const std::string &folder);

/// A box of a state that is asked for, in elements of the whole tensor.
struct WantedBox {
  std::string tensor, state;
  std::vector<int64_t> begin, extent;
  /// Takes `values`, as f32, of the box from its row-major element `first` on.
  /// Is given every element once, in any order, on any thread that reads.
  std::function<void(uint64_t first, absl::Span<const float> values)> take;
};

/// Calls its argument, on each of some threads, and returns when all calls
/// have. One call alone does all the work too.
using OnThreads = absl::FunctionRef<void(absl::FunctionRef<void()>)>;

/// Immutable once open; any number of threads may read.
class Checkpoint {
public:
  virtual ~Checkpoint() = default;
  /// `path` is the folder of one checkpoint. Reads the manifest and looks that
  /// each file is there in full length. Codes as in Files.h.
  static absl::StatusOr<std::unique_ptr<Checkpoint>>
  open(const std::string &path);

  virtual const std::string &path() const = 0;
  virtual const Manifest &manifest() const = 0;
  /// Null when there is no such tensor.
  virtual const StoredTensor *find(std::string_view name) const = 0;

  /// Reads boxes from whichever stored ones hold them, files from front to
  /// back. What is read is hashed before `take` sees it: kDataLoss names file,
  /// tensor and the bytes that were changed.
  virtual absl::Status readAll(absl::Span<const WantedBox> boxes,
                               OnThreads onThreads) const = 0;
  /// One box, row-major, on this thread.
  absl::Status read(std::string_view tensor, std::string_view state,
                    absl::Span<const int64_t> begin,
                    absl::Span<const int64_t> extent,
                    absl::Span<float> out) const;

  /// A file that is no box, "model.mlir", whole; hashed first.
  virtual absl::StatusOr<std::string> readText(std::string_view file) const = 0;

  /// Hashes every byte of every file. The first bad range is told as by `read`.
  virtual absl::Status verify() const = 0;
};

} // namespace meshwork::runtime
