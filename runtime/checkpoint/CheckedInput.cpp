#include "runtime/checkpoint/CheckedInput.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/checkpoint/HashedFile.h"
#include <absl/strings/str_cat.h>
#include <algorithm>
#include <new>

namespace meshwork::runtime {

void RangeBuffers::Free::operator()(unsigned char *buffer) const {
  ::operator delete(buffer, std::align_val_t(directBytes));
}

RangeBuffers::Buffer RangeBuffers::take() {
  std::lock_guard<std::mutex> lock(mutex);
  if (free.empty())
    return Buffer(static_cast<unsigned char *>(
        ::operator new(hashedBytes, std::align_val_t(directBytes))));
  Buffer buffer = std::move(free.back());
  free.pop_back();
  return buffer;
}

void RangeBuffers::give(Buffer buffer) {
  std::lock_guard<std::mutex> lock(mutex);
  free.push_back(std::move(buffer));
}

absl::StatusOr<CheckedInput> CheckedInput::open(const std::string &folder,
                                                const StoredFile &stored) {
  absl::StatusOr<InputFile> file = InputFile::openInFolder(folder, stored.name);
  if (absl::IsNotFound(file.status()))
    return absl::DataLossError(absl::StrCat(file.status().message(),
                                            ", expected a file of ",
                                            stored.bytes, " bytes"));
  MESHWORK_RETURN_IF_ERROR(file.status());
  if (file->size() != stored.bytes)
    return absl::DataLossError(absl::StrCat(
        quote(file->path()), ": has ", file->size(), " bytes, expected ",
        stored.bytes, ": it was cut off, or is of another checkpoint"));
  CheckedInput input;
  input.file = *std::move(file);
  if (stored.bytes >= hashedBytes) // what is small may well be in the cache
    input.file.goPastCache();
  input.stored = &stored;
  input.isChecked = std::make_unique<std::atomic<bool>[]>(stored.hashes.size());
  return input;
}

uint64_t CheckedInput::endOfRange(size_t range) const {
  return std::min(size(), (range + 1) * hashedBytes);
}

absl::Status CheckedInput::check(size_t range, unsigned char *buffer) const {
  uint64_t begin = range * hashedBytes, end = endOfRange(range);
  MESHWORK_RETURN_IF_ERROR(file.readPastCache(begin, buffer, end - begin));
  std::string hash =
      hashText({reinterpret_cast<const char *>(buffer), end - begin});
  if (hash != stored->hashes[range])
    return absl::DataLossError(
        absl::StrCat(quote(path()), ": bytes ", begin, " to ", end,
                     " are not those that were saved (hash ", hash,
                     ", expected ", stored->hashes[range], ")"));
  isChecked[range] = true;
  return absl::OkStatus();
}

absl::StatusOr<const unsigned char *>
CheckedInput::read(uint64_t begin, uint64_t end, unsigned char *buffer) const {
  size_t range = begin / hashedBytes;
  if (!isChecked[range]) {
    MESHWORK_RETURN_IF_ERROR(check(range, buffer));
  } else {
    uint64_t first = begin / directBytes * directBytes;
    MESHWORK_RETURN_IF_ERROR(
        file.readPastCache(first, buffer + first % hashedBytes, end - first));
  }
  return buffer + begin % hashedBytes;
}

} // namespace meshwork::runtime
