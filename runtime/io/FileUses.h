// The files of one command, so that none is lost because it was named twice.
//
//   status = checkFileUses({{"the plan", "a.mwplan"},
//                           {"--save", "w.safetensors", true}});
#pragma once

#include <string>

#include <absl/status/status.h>
#include <absl/types/span.h>

namespace meshwork::runtime {

struct FileUse {
  std::string role; // as messages name it: "the plan", "--save"
  std::string path;
  bool isWritten = false;
  /// The tool made the name up: a link there is replaced, not followed.
  bool replacesLink = false;
};

/// Fails with kInvalidArgument when two uses are one file, whatever it is
/// called, and at least one writes it. Compares device and inode, so links are
/// seen. For a file that is not there it compares folder and name. Pipes and
/// devices may be shared, and a path may be empty. To be called before any of
/// the files is created.
absl::Status checkFileUses(absl::Span<const FileUse> uses);

} // namespace meshwork::runtime
