// Device and pinned memory, copies, fills.
#include "test/Support/Emulator/Emulator.h"
#include "test/Support/Emulator/driver/State.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <cstring>

using namespace meshwork::emulator;

namespace {

bool checkRange(uint64_t address, size_t bytes, const char *what) {
  if (state().memory.covers(address, bytes))
    return true;
  failRunning(code::illegalAddress,
              absl::StrFormat("%s of %u bytes at 0x%x: %s", what, bytes,
                              address, state().memory.describe(address)));
  return false;
}

/// The pinned allocation that holds this address, or an empty range. Who calls
/// holds pinnedMutex.
meshwork::ptx::Range pinnedAround(const void *address) {
  uint64_t at = reinterpret_cast<uint64_t>(address);
  auto it = state().pinned.upper_bound(at);
  if (it == state().pinned.begin())
    return {};
  --it;
  meshwork::ptx::Range range{it->first, it->first + it->second.first};
  return range.covers(at, 1) ? range : meshwork::ptx::Range();
}
bool isPinned(const void *address) {
  std::lock_guard lock(state().pinnedMutex);
  return pinnedAround(address).end != 0;
}
/// Host memory that was pinned when the copy was called must still be, and
/// nobody frees it while the copy runs.
template <typename Copy>
void copyLive(const void *host, size_t bytes, bool wasPinned, Copy copy) {
  uint64_t at = reinterpret_cast<uint64_t>(host);
  std::unique_lock lock(state().pinnedMutex);
  if (!wasPinned || pinnedAround(host).covers(at, bytes))
    return copy();
  lock.unlock();
  failRunning(code::illegalAddress,
              absl::StrCat("a copy of ", bytes,
                           " bytes leaves its pinned "
                           "memory, or that was freed before the copy ran"));
}

/// The host may look at a word while the copy runs.
void copyToHost(void *to, DevicePtr from, size_t bytes) {
  auto *word = static_cast<uint32_t *>(to);
  if (bytes == sizeof(*word) && from % sizeof(*word) == 0 &&
      reinterpret_cast<uint64_t>(to) % sizeof(*word) == 0)
    std::atomic_ref<uint32_t>(*word).store(
        *reinterpret_cast<const uint32_t *>(from), std::memory_order_release);
  else
    std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
}

/// A device that failed does no more work.
bool alive() { return runningDevice()->error == code::success; }

Result findStream(Stream handle, std::shared_ptr<StreamState> &stream) {
  DeviceState *device;
  if (Result failed = current(device))
    return failed;
  stream = state().streams.find(handle);
  return stream ? code::success : code::invalidHandle;
}

} // namespace

extern "C" {

Result cuMemGetInfo_v2(size_t *free, size_t *total) {
  DeviceState *device;
  if (Result failed = current(device))
    return failed;
  *total = state().settings.memoryBytes;
  *free = *total - state().memory.used(device->ordinal);
  return code::success;
}
Result cuMemAlloc_v2(DevicePtr *to, size_t bytes) {
  DeviceState *device;
  if (Result failed = currentForUnsafeCall(device))
    return failed;
  if (!to || bytes == 0)
    return code::invalidValue;
  *to = state().memory.allocate(device->ordinal, bytes,
                                state().settings.memoryBytes);
  return *to ? code::success : code::outOfMemory;
}
/// Waits for all work of the device, as the driver does.
Result cuMemFree_v2(DevicePtr memory) {
  DeviceState *device;
  if (Result failed = currentForUnsafeCall(device))
    return failed;
  if (memory == 0)
    return code::success;
  synchronize(*device);
  bool intact = true;
  if (!state().memory.release(memory, intact))
    return code::invalidValue;
  if (!intact) {
    say(absl::StrFormat("something wrote beyond the allocation at 0x%x",
                        memory));
    device->error = code::illegalAddress;
  }
  return device->error;
}
Result cuMemHostAlloc(void **to, size_t bytes, unsigned flags) {
  DeviceState *device;
  if (Result failed = currentForUnsafeCall(device))
    return failed;
  if (!to || bytes == 0)
    return code::invalidValue;
  auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  *to = memory.get();
  std::lock_guard lock(state().pinnedMutex);
  state().pinned[reinterpret_cast<uint64_t>(*to)] = {bytes, std::move(memory)};
  return code::success;
}
Result cuMemFreeHost(void *memory) {
  DeviceState *device;
  if (Result failed = currentForUnsafeCall(device))
    return failed;
  std::lock_guard lock(state().pinnedMutex);
  return state().pinned.erase(reinterpret_cast<uint64_t>(memory))
             ? code::success
             : code::invalidValue;
}

Result cuMemcpyHtoDAsync_v2(DevicePtr to, const void *from, size_t bytes,
                            Stream handle) {
  std::shared_ptr<StreamState> stream;
  if (Result failed = findStream(handle, stream))
    return failed;
  note("copyToDevice", handle);
  bool pinned = isPinned(from);
  return enqueue(*stream, [=] {
    if (alive() && checkRange(to, bytes, "a copy to the device"))
      copyLive(from, bytes, pinned,
               [&] { std::memcpy(reinterpret_cast<void *>(to), from, bytes); });
  });
}
Result cuMemcpyDtoHAsync_v2(void *to, DevicePtr from, size_t bytes,
                            Stream handle) {
  std::shared_ptr<StreamState> stream;
  if (Result failed = findStream(handle, stream))
    return failed;
  note("copyToHost", handle);
  bool pinned = isPinned(to);
  return enqueue(*stream, [=] {
    if (alive() && checkRange(from, bytes, "a copy to the host"))
      copyLive(to, bytes, pinned, [&] { copyToHost(to, from, bytes); });
  });
}
Result cuMemcpyDtoDAsync_v2(DevicePtr to, DevicePtr from, size_t bytes,
                            Stream handle) {
  std::shared_ptr<StreamState> stream;
  if (Result failed = findStream(handle, stream))
    return failed;
  return enqueue(*stream, [=] {
    if (!alive() || !checkRange(to, bytes, "a copy on the device") ||
        !checkRange(from, bytes, "a copy on the device"))
      return;
    if (to < from + bytes && from < to + bytes && to != from)
      return failRunning(code::launchFailed,
                         absl::StrFormat("a copy of %u bytes from 0x%x to 0x%x "
                                         "overlaps",
                                         bytes, from, to));
    std::memmove(reinterpret_cast<void *>(to),
                 reinterpret_cast<const void *>(from), bytes);
  });
}
Result cuMemsetD8Async(DevicePtr to, unsigned char value, size_t bytes,
                       Stream handle) {
  std::shared_ptr<StreamState> stream;
  if (Result failed = findStream(handle, stream))
    return failed;
  return enqueue(*stream, [=] {
    if (alive() && checkRange(to, bytes, "a fill"))
      std::memset(reinterpret_cast<void *>(to), value, bytes);
  });
}

void meshworkEmulatorNote(const char *call, unsigned long long number) {
  note(call, uint64_t{number});
}

int meshworkEmulatorCheck(unsigned long long address, size_t bytes) {
  return state().memory.covers(address, bytes);
}

} // extern "C"
