#include "runtime/device/cuda/Memory.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/machine/Memory.h"
#include <algorithm>
#include <array>
#include <cstring>

namespace meshwork::runtime::cuda {
namespace {
/// Tokens of several microbatches; weights travel in pieces, one copied while
/// the next is filled.
constexpr size_t ringBytes = size_t{4} << 20, pieceBytes = size_t{1} << 20;
constexpr size_t alignment = 64;
} // namespace

absl::StatusOr<DeviceMemory> DeviceMemory::create(const Gpu &gpu,
                                                  uint64_t bytes) {
  DeviceMemory memory;
  memory.gpu = &gpu;
  if (bytes == 0)
    return memory;
  Result result = gpu.driver().memoryAllocate(&memory.start, bytes);
  if (result == result::outOfMemory)
    return absl::ResourceExhaustedError(
        absl::StrCat("GPU ", gpu.ordinal(), ", ", gpu.describe(), ", gives no ",
                     bytesText(bytes),
                     ": compile with a smaller micro batch, or run on a GPU "
                     "that nobody else uses"));
  MESHWORK_RETURN_IF_ERROR(gpu.driver().check(
      result, absl::StrCat("allocating ", bytesText(bytes))));
  return memory;
}

DeviceMemory DeviceMemory::ownedBy(std::shared_ptr<void> owner,
                                   DevicePtr start) {
  DeviceMemory memory;
  memory.owner = std::move(owner);
  memory.start = start;
  return memory;
}

DeviceMemory::DeviceMemory(DeviceMemory &&other) noexcept
    : gpu(other.gpu), start(std::exchange(other.start, 0)),
      owner(std::move(other.owner)) {}

DeviceMemory &DeviceMemory::operator=(DeviceMemory &&other) noexcept {
  std::swap(gpu, other.gpu);
  std::swap(start, other.start);
  std::swap(owner, other.owner);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (start && gpu)
    (void)gpu->driver().memoryFree(start);
}

absl::StatusOr<PinnedMemory> PinnedMemory::create(const Gpu &gpu,
                                                  size_t bytes) {
  PinnedMemory memory;
  memory.gpu = &gpu;
  void *start = nullptr;
  Result result = gpu.driver().hostAllocate(&start, bytes, 0);
  if (result == result::outOfMemory)
    return absl::ResourceExhaustedError(absl::StrCat(
        "this machine gives no ", bytesText(bytes),
        " of memory that stays in place, for copies to and from GPU ",
        gpu.ordinal(), ": run fewer ranks on it"));
  MESHWORK_RETURN_IF_ERROR(
      gpu.driver().check(result, "allocating pinned memory"));
  memory.start = static_cast<std::byte *>(start);
  return memory;
}

PinnedMemory::PinnedMemory(PinnedMemory &&other) noexcept
    : gpu(other.gpu), start(std::exchange(other.start, nullptr)) {}

PinnedMemory &PinnedMemory::operator=(PinnedMemory &&other) noexcept {
  std::swap(gpu, other.gpu);
  std::swap(start, other.start);
  return *this;
}

PinnedMemory::~PinnedMemory() {
  if (start)
    (void)gpu->driver().hostFree(start);
}

absl::StatusOr<std::unique_ptr<Staging>> Staging::create(const Gpu &gpu,
                                                         Queue &queue) {
  std::unique_ptr<Staging> staging(new Staging(gpu, queue));
  MESHWORK_RETURN_IF_ERROR(staging->allocate());
  return staging;
}

absl::Status Staging::allocate() {
  MESHWORK_ASSIGN_OR_RETURN(ring, PinnedMemory::create(gpu, ringBytes));
  for (Part &part : parts)
    MESHWORK_ASSIGN_OR_RETURN(part.copied, EventHandle::create(gpu));
  return absl::OkStatus();
}

/// The next part of the ring, in one piece; `give` follows the copy.
absl::StatusOr<std::byte *> Staging::take(size_t bytes) {
  size_t size = (bytes + alignment - 1) / alignment * alignment;
  size_t left = ringBytes - taken % ringBytes;
  uint64_t begin = size <= left ? taken : taken + left;
  while (begin + size - free > ringBytes || begun - ended == parts.size()) {
    const Part &oldest = parts[ended % parts.size()];
    // Not in the driver: the copy may lie behind a peer that does not come.
    MESHWORK_RETURN_IF_ERROR(queue.await(oldest.copied));
    free = oldest.end;
    ++ended;
  }
  taken = begin + size;
  return ring.data() + begin % ringBytes;
}

absl::Status Staging::give() {
  Part &part = parts[begun++ % parts.size()];
  part.end = taken;
  return queue.record(part.copied);
}

absl::Status Staging::write(DevicePtr to, absl::Span<const std::byte> from) {
  const Driver &driver = gpu.driver();
  for (size_t at = 0; at < from.size(); at += pieceBytes) {
    size_t count = std::min(pieceBytes, from.size() - at);
    std::byte *piece = nullptr;
    MESHWORK_ASSIGN_OR_RETURN(piece, take(count));
    std::memcpy(piece, from.data() + at, count);
    MESHWORK_RETURN_IF_ERROR(
        driver.check(driver.copyToDevice(to + at, piece, count, queue.stream()),
                     "copying to the GPU"));
    MESHWORK_RETURN_IF_ERROR(give());
  }
  return absl::OkStatus();
}

/// Two pieces are on their way while one is taken out; a third part of the ring
/// is never taken again before that.
absl::Status Staging::read(DevicePtr from, absl::Span<std::byte> to) {
  const Driver &driver = gpu.driver();
  constexpr size_t ahead = 2;
  std::array<std::pair<std::byte *, const Part *>, ahead> coming;
  size_t count = (to.size() + pieceBytes - 1) / pieceBytes;
  for (size_t i = 0; i < count + ahead; ++i) {
    auto bytesOf = [&](size_t piece) {
      return std::min(pieceBytes, to.size() - piece * pieceBytes);
    };
    auto &[piece, part] = coming[i % ahead];
    if (i >= ahead && i - ahead < count) {
      MESHWORK_RETURN_IF_ERROR(queue.await(part->copied));
      std::memcpy(to.data() + (i - ahead) * pieceBytes, piece,
                  bytesOf(i - ahead));
    }
    if (i >= count)
      continue;
    MESHWORK_ASSIGN_OR_RETURN(piece, take(bytesOf(i)));
    MESHWORK_RETURN_IF_ERROR(
        driver.check(driver.copyToHost(piece, from + i * pieceBytes, bytesOf(i),
                                       queue.stream()),
                     "copying from the GPU"));
    part = &parts[begun % parts.size()];
    MESHWORK_RETURN_IF_ERROR(give());
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime::cuda
