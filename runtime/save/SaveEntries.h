// What each rank tells of its part of a save, as text on its way to who writes
// the manifest.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/checkpoint/Manifest.h"

namespace meshwork::runtime {

struct SaveEntries {
  absl::Status status; // why its files are not there
  std::vector<StoredFile> files;

  struct Entry {
    uint32_t tensor = 0, state = 0; // of savedTensors
    uint32_t file = 0;              // of `files`
    uint64_t offset = 0;
    std::vector<int64_t> begin, extent;
  };
  std::vector<Entry> boxes;
};

std::string entriesText(const SaveEntries &entries);
/// internal when it is no such text.
absl::StatusOr<SaveEntries> parseEntries(const std::string &text);

} // namespace meshwork::runtime
