// A folder that is there with all its files or not at all.
//
//   absl::StatusOr<OutputFolder> folder = OutputFolder::create("model");
//   ... write whole files into folder->path() ...
//   status = folder->commit();
#pragma once

#include "runtime/io/Files.h"

namespace meshwork::runtime {

/// Filled beside the target under another name, and renamed. Without commit()
/// nothing is left behind; what a process that was killed has left goes when
/// the next one begins with the same target.
class OutputFolder {
public:
  /// kFailedPrecondition when `path` is anything but absent or an empty folder.
  static absl::StatusOr<OutputFolder> create(const std::string &path);
  OutputFolder(OutputFolder &&other) noexcept;
  ~OutputFolder();
  /// Where files go until then. Each must be synced by who writes it.
  const std::string &path() const { return temporary; }
  absl::Status commit();

private:
  OutputFolder() = default;
  absl::Status make();
  FileDescriptor lock;           // of the temporary folder: somebody fills it
  std::string target, temporary; // temporary is empty once committed
};

} // namespace meshwork::runtime
