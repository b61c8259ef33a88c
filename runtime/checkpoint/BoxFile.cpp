#include "runtime/checkpoint/BoxFile.h"
#include "runtime/StatusMacros.h"
#include "runtime/checkpoint/HashedFile.h"
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <nlohmann/json.hpp>

namespace meshwork::runtime {
namespace {
/// Readers may map the file and want aligned data.
constexpr size_t alignmentBytes = 64;

/// The header with its length in front; `offsets` are from the end of it.
std::string headerOf(absl::Span<const BoxToWrite> boxes,
                     std::vector<uint64_t> &offsets) {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  uint64_t offset = 0;
  for (const BoxToWrite &box : boxes) {
    uint64_t end = offset + box.bytes();
    absl::StrAppend(&header, ",", nlohmann::json(box.name()).dump(),
                    R"(:{"dtype":")", box.dtype, R"(","shape":[)",
                    absl::StrJoin(box.extent, ","), R"(],"data_offsets":[)",
                    offset, ",", end, "]}");
    offsets.push_back(offset);
    offset = end;
  }
  header += '}';
  size_t whole = header.size() + sizeof(uint64_t);
  header.append((alignmentBytes - whole % alignmentBytes) % alignmentBytes,
                ' ');
  uint64_t length = header.size();
  return std::string(reinterpret_cast<const char *>(&length), sizeof(length)) +
         header;
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

absl::StatusOr<WrittenBoxes> writeBoxes(const std::string &folder,
                                        const std::string &name,
                                        absl::Span<const BoxToWrite> boxes,
                                        ProduceBox produce) {
  absl::StatusOr<HashedFile> file = HashedFile::create(folder, name);
  MESHWORK_RETURN_IF_ERROR(file.status());
  WrittenBoxes written;
  std::string header = headerOf(boxes, written.offsets);
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
