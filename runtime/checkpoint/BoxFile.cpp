#include "runtime/checkpoint/BoxFile.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/checkpoint/HashedFile.h"
#include "runtime/io/SafeTensorsHeader.h"
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

namespace meshwork::runtime {
namespace {
/// Readers may map the file and want aligned data.
constexpr uint64_t smallAlignment = 64;
/// So that large boxes, which lie in memory as in the file, go to the disk from
/// where they are.
uint64_t alignmentFor(uint64_t bytes) {
  return bytes < hashedBytes ? smallAlignment : directBytes;
}

/// `offsets` are from the end of it.
absl::StatusOr<std::string> headerOf(absl::Span<const BoxToWrite> boxes,
                                     std::vector<uint64_t> &offsets) {
  std::vector<HeaderEntry> entries;
  uint64_t offset = 0;
  for (const BoxToWrite &box : boxes) {
    entries.push_back({box.name(),
                       box.dtype,
                       {box.extent.begin(), box.extent.end()},
                       box.bytes()});
    offsets.push_back(offset);
    offset += box.bytes();
  }
  return safeTensorsHeader(entries, alignmentFor(offset));
}
} // namespace

std::string BoxToWrite::name() const {
  std::string ranges;
  for (size_t dim = 0; dim < begin.size(); ++dim)
    absl::StrAppend(&ranges, dim ? "," : "", begin[dim], ":",
                    begin[dim] + extent[dim]);
  return absl::StrCat(tensor, "/", state, "[", ranges, "]");
}

uint64_t BoxToWrite::bytes() const {
  uint64_t bytes = dtype == "F32" ? 4 : 2;
  for (int64_t size : extent)
    bytes *= static_cast<uint64_t>(size);
  return bytes;
}

std::string statesName(uint32_t writer) {
  return absl::StrFormat("states-%05d.safetensors", writer);
}

absl::Status checkBoxes(absl::Span<const BoxToWrite> boxes) {
  std::vector<uint64_t> offsets;
  return headerOf(boxes, offsets).status();
}

absl::StatusOr<WrittenBoxes> writeBoxes(const std::string &folder,
                                        const std::string &name,
                                        absl::Span<const BoxToWrite> boxes,
                                        ProduceBox produce,
                                        std::function<void()> afterEach) {
  WrittenBoxes written;
  std::string header;
  MESHWORK_ASSIGN_OR_RETURN(header, headerOf(boxes, written.offsets));
  absl::StatusOr<HashedFile> file =
      HashedFile::create(folder, name, std::move(afterEach));
  MESHWORK_RETURN_IF_ERROR(file.status());
  MESHWORK_RETURN_IF_ERROR(file->write(header.data(), header.size()));
  for (uint64_t &offset : written.offsets)
    offset += header.size();
  for (size_t i = 0; i < boxes.size(); ++i)
    MESHWORK_RETURN_IF_ERROR(produce(i, [&](const void *from, uint64_t bytes) {
      return file->write(from, bytes);
    }));
  MESHWORK_ASSIGN_OR_RETURN(written.file, file->commit());
  return written;
}

} // namespace meshwork::runtime
