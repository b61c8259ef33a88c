// Order matters. The frame must agree with the file before anything is
// allocated by a size that it claims. The checksum and the structure of the
// payload must be right before anything inside is looked at.
#include "lib/Plan/PlanFile.h"
#include "lib/Plan/Checked.h"
#include "lib/Plan/PackFile.h"
#include "lib/Plan/PlanCheck.h"
#include "lib/Plan/ShareTables.h"
#include "lib/Text/FileKind.h"
#include "meshwork/Plan/Frame.h"
#include "meshwork/Runtime/ExitCode.h"
#include "meshwork/Text/Escape.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <zstd.h>

namespace meshwork::plan {
namespace {

/// FlatBuffers' verifier reads the identifier of smaller ones first.
constexpr uint64_t leastPayloadBytes = 16;

/// Closes on every way out.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
};

template <typename T> T load(const unsigned char *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// Checks a frame against the number of bytes that follow it.
absl::Status checkFrame(const unsigned char *frame, uint64_t following) {
  if (std::memcmp(frame, magic, sizeof(magic)) != 0) {
    if (std::memcmp(frame, magic, 6) == 0)
      return bad("its line ends were changed: copy plans in binary mode");
    return bad("not a plan: it does not start with \"MWPLAN\"");
  }
  if (uint32_t version = load<uint32_t>(frame + 8); version != formatVersion)
    return bad("made by format v", version, ", this runtime reads v",
               formatVersion, ": compile the model again");
  if (load<uint64_t>(frame + 40) != XXH3_64bits(frame, 40))
    return bad("damaged: the checksum of its first 40 bytes is wrong");
  if (uint32_t size = load<uint32_t>(frame + 12); size != frameBytes)
    return bad("its frame has ", size, " bytes, expected ", frameBytes);
  for (uint32_t i = 48; i < frameBytes; ++i)
    if (frame[i] != 0)
      return bad("damaged: byte ", i, " of the frame is not zero");
  uint64_t payloadBytes = load<uint64_t>(frame + 16);
  if (payloadBytes != following)
    return bad(payloadBytes > following ? "truncated: " : "too long: ",
               following, " bytes follow the frame, expected ", payloadBytes);
  // The FlatBuffers verifier asserts on larger ones.
  if (payloadBytes < leastPayloadBytes || payloadBytes > maxPayloadBytes)
    return bad("its payload has ", payloadBytes, " bytes, expected ",
               leastPayloadBytes, " to ", maxPayloadBytes);
  return absl::OkStatus();
}

absl::Status readAll(int fd, unsigned char *to, uint64_t bytes) {
  while (bytes > 0) {
    ssize_t got = ::read(fd, to, bytes);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return absl::UnavailableError(
          absl::StrCat("cannot read: ", std::strerror(errno)));
    if (got == 0)
      return bad("truncated while it was read");
    to += got;
    bytes -= static_cast<uint64_t>(got);
  }
  return absl::OkStatus();
}

/// What a file is that is no plan, where that is known; `otherwise` elsewhere.
absl::Status otherFile(int fd, uint64_t sizeBytes, absl::Status otherwise) {
  std::string start(std::min(sizeBytes, kindBytes), '\0');
  ssize_t got = ::pread(fd, start.data(), start.size(), 0);
  start.resize(got < 0 ? 0 : static_cast<size_t>(got));
  std::optional<FileKind> kind = kindOf(start, sizeBytes);
  if (!kind || start.starts_with(std::string_view(magic, 6)))
    return otherwise;
  return bad("not a plan but ", kind->name,
             ": expected a file that `meshwork compile` wrote");
}

absl::Status named(const std::string &path, const absl::Status &status) {
  absl::Status result(status.code(), absl::StrCat("plan '", onOneLine(path),
                                                  "': ", status.message()));
  return status.code() == absl::StatusCode::kUnavailable
             ? runtime::withExitCode(result, runtime::ExitCode::inputOutput)
             : result;
}
} // namespace

PlanFile::~PlanFile() {
  if (bytes)
    ::munmap(bytes, payloadSize);
}

absl::Status PlanFile::allocate(uint64_t bytes) {
  void *memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a plan of ", bytes, " bytes"));
  this->bytes = static_cast<unsigned char *>(memory);
  payloadSize = bytes;
  return absl::OkStatus();
}

absl::Status PlanFile::unpack() {
  unsigned long long size = ZSTD_getFrameContentSize(bytes, payloadSize);
  uint64_t most = std::min(maxPayloadBytes, mostUnpacked(payloadSize));
  if (size < leastPayloadBytes || size > most) // or is not told
    return bad("its payload does not tell the size that it unpacks to, "
               "expected ",
               leastPayloadBytes, " to ", most, " bytes");
  unsigned char *packed = std::exchange(bytes, nullptr);
  uint64_t packedSize = payloadSize;
  absl::Status status = allocate(size);
  size_t got = 0;
  if (status.ok())
    got = ZSTD_decompress(bytes, size, packed, packedSize);
  ::munmap(packed, packedSize);
  if (status.ok() && got != size)
    return bad("its payload does not unpack although its checksum is right");
  return status;
}

absl::Status PlanFile::check(const unsigned char *frame) {
  XXH128_canonical_t digest;
  XXH128_canonicalFromHash(&digest, XXH3_128bits(bytes, payloadSize));
  if (std::memcmp(digest.digest, frame + 24, sizeof(digest.digest)) != 0)
    return bad("damaged: the checksum of its payload is wrong");
  if (isPacked(bytes, payloadSize))
    MESHWORK_RETURN_IF_ERROR(unpack());
  // Later writes to the plan, by a stray pointer, fault instead of misleading.
  ::mprotect(bytes, payloadSize, PROT_READ);
  flatbuffers::Verifier verifier(bytes, payloadSize, /*max_depth=*/64,
                                 maxTables(payloadSize));
  if (!PlanBufferHasIdentifier(bytes))
    return bad("its payload is not a plan: no identifier \"", PlanIdentifier(),
               "\"");
  if (!VerifyPlanBuffer(verifier))
    return bad("its structure is broken although its checksum is right");
  root = GetPlan(bytes);
  return checkPlan(*root);
}

absl::StatusOr<std::unique_ptr<PlanFile>>
PlanFile::fromBytes(absl::Span<const unsigned char> file) {
  if (file.size() < frameBytes)
    return bad("truncated: it has ", file.size(),
               " bytes, its frame alone has ", frameBytes);
  uint64_t following = file.size() - frameBytes;
  MESHWORK_RETURN_IF_ERROR(checkFrame(file.data(), following));
  std::unique_ptr<PlanFile> result(new PlanFile);
  MESHWORK_RETURN_IF_ERROR(result->allocate(following));
  std::memcpy(result->bytes, file.data() + frameBytes, following);
  MESHWORK_RETURN_IF_ERROR(result->check(file.data()));
  return result;
}

absl::StatusOr<std::unique_ptr<PlanFile>>
PlanFile::open(const std::string &path) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) {
    std::string text =
        absl::StrCat("plan '", onOneLine(path), "': ", std::strerror(errno));
    return errno == EACCES || errno == EPERM ? absl::PermissionDeniedError(text)
                                             : absl::NotFoundError(text);
  }
  struct stat info;
  if (::fstat(file.fd, &info) != 0 || !S_ISREG(info.st_mode))
    return named(path, bad("not a regular file"));
  unsigned char frame[frameBytes];
  uint64_t fileBytes = static_cast<uint64_t>(info.st_size);
  if (fileBytes < frameBytes)
    return named(path, bad("truncated: it has ", fileBytes,
                           " bytes, its frame alone has ", frameBytes));
  std::unique_ptr<PlanFile> result(new PlanFile);
  absl::Status status = readAll(file.fd, frame, frameBytes);
  if (status.ok())
    status = checkFrame(frame, fileBytes - frameBytes);
  if (!status.ok())
    return named(path, otherFile(file.fd, fileBytes, std::move(status)));
  status = result->allocate(fileBytes - frameBytes);
  if (status.ok())
    status = readAll(file.fd, result->bytes, result->payloadSize);
  if (status.ok())
    status = result->check(frame);
  if (!status.ok())
    return named(path, status);
  return result;
}

} // namespace meshwork::plan
