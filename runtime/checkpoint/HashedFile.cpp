#include "runtime/checkpoint/HashedFile.h"
#include "runtime/StatusMacros.h"
#include <absl/strings/str_cat.h>
#include <algorithm>

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

struct HashedFile::Hash {
  XXH3_state_t state;
};

HashedFile::HashedFile(OutputFile file, std::string name)
    : file(std::move(file)), stored{std::move(name), 0, {}},
      hash(std::make_unique<Hash>()) {
  XXH3_128bits_reset(&hash->state);
}

HashedFile::HashedFile(HashedFile &&) noexcept = default;
HashedFile::~HashedFile() = default;

absl::StatusOr<HashedFile> HashedFile::create(const std::string &folder,
                                              const std::string &name) {
  absl::StatusOr<OutputFile> file =
      OutputFile::create(absl::StrCat(folder, "/", name));
  MESHWORK_RETURN_IF_ERROR(file.status());
  return HashedFile(*std::move(file), name);
}

void HashedFile::endHash() {
  stored.hashes.push_back(hexText(XXH3_128bits_digest(&hash->state)));
  XXH3_128bits_reset(&hash->state);
}

absl::Status HashedFile::write(const void *from, uint64_t bytes) {
  const char *next = static_cast<const char *>(from);
  while (bytes > 0) {
    uint64_t piece = std::min(bytes, hashedBytes - stored.bytes % hashedBytes);
    MESHWORK_RETURN_IF_ERROR(file.write(next, piece));
    XXH3_128bits_update(&hash->state, next, piece);
    next += piece;
    bytes -= piece;
    stored.bytes += piece;
    if (stored.bytes % hashedBytes == 0)
      endHash();
  }
  return absl::OkStatus();
}

absl::StatusOr<StoredFile> HashedFile::commit() {
  if (stored.bytes % hashedBytes != 0)
    endHash();
  MESHWORK_RETURN_IF_ERROR(file.commit());
  return std::move(stored);
}

} // namespace meshwork::runtime
