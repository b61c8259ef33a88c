#include "runtime/checkpoint/HashedFile.h"
#include "lib/Plan/StatusMacros.h"
#include <absl/strings/str_cat.h>
#include <algorithm>
#include <cstring>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace meshwork::runtime {
namespace {
std::string hexText(XXH128_hash_t hash) {
  return absl::StrCat(absl::Hex(hash.high64, absl::kZeroPad16),
                      absl::Hex(hash.low64, absl::kZeroPad16));
}
} // namespace

std::string hashText(std::string_view bytes) {
  return hexText(XXH3_128bits(bytes.data(), bytes.size()));
}

absl::StatusOr<HashedFile> HashedFile::create(const std::string &folder,
                                              const std::string &name,
                                              std::function<void()> afterEach) {
  absl::StatusOr<OutputFile> output = OutputFile::createInFolder(folder, name);
  MESHWORK_RETURN_IF_ERROR(output.status());
  HashedFile file(*std::move(output), std::move(afterEach));
  file.stored.name = name;
  file.block.reset(
      static_cast<std::byte *>(std::aligned_alloc(directBytes, hashedBytes)));
  if (!file.block)
    return absl::ResourceExhaustedError(
        absl::StrCat(quote(name), ": cannot take the ", hashedBytes,
                     " bytes through which the file is written"));
  return file;
}

static bool isAligned(const std::byte *from) {
  return reinterpret_cast<uintptr_t>(from) % directBytes == 0;
}

absl::Status HashedFile::write(const void *from, uint64_t bytes) {
  const std::byte *next = static_cast<const std::byte *>(from);
  while (bytes > 0) {
    uint64_t piece = std::min(bytes, hashedBytes - filled);
    if (piece == hashedBytes && isAligned(next)) {
      MESHWORK_RETURN_IF_ERROR(put(next, piece));
    } else {
      std::memcpy(block.get() + filled, next, piece);
      filled += piece;
      if (filled == hashedBytes)
        MESHWORK_RETURN_IF_ERROR(put(block.get(), std::exchange(filled, 0)));
    }
    next += piece;
    bytes -= piece;
  }
  return absl::OkStatus();
}

absl::Status HashedFile::put(const std::byte *from, uint64_t bytes) {
  stored.hashes.push_back(
      hexText(XXH3_128bits(from, static_cast<size_t>(bytes))));
  stored.bytes += bytes;
  MESHWORK_RETURN_IF_ERROR(file.writePastCache(from, bytes));
  if (bytes == hashedBytes)
    afterEach();
  return absl::OkStatus();
}

absl::StatusOr<StoredFile> HashedFile::commit() {
  if (filled > 0)
    MESHWORK_RETURN_IF_ERROR(put(block.get(), filled));
  MESHWORK_RETURN_IF_ERROR(file.commit());
  return std::move(stored);
}

} // namespace meshwork::runtime
