// Runs a program of this project that lies beside this one, with files in a
// folder of its own.
#pragma once

#include "absl/status/statusor.h"
#include <string>
#include <vector>

namespace meshwork::runtime {

/// A folder that goes with this object, with all that is in it.
class ScratchFolder {
public:
  static absl::StatusOr<ScratchFolder> make();
  ScratchFolder(ScratchFolder &&other) noexcept : path(std::move(other.path)) {
    other.path.clear();
  }
  ~ScratchFolder();
  std::string file(const std::string &name) const { return path + "/" + name; }

private:
  explicit ScratchFolder(std::string path) : path(std::move(path)) {}
  std::string path;
};

/// The path of `name`, "meshwork" say, beside this program. notFound when it is
/// not there.
absl::StatusOr<std::string> programHere(const std::string &name);

/// Runs a program to its end. failedPrecondition has what it said, without the
/// path of the folder.
///   command  its path, and what it is given
absl::Status runProgram(const std::vector<std::string> &command,
                        const ScratchFolder &scratch);

} // namespace meshwork::runtime
