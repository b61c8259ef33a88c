#include "test/Support/Emulator/driver/Allocations.h"

#include "absl/strings/str_format.h"

#include <cstring>
#include <mutex>

namespace meshwork::emulator {
namespace {

constexpr size_t guard = 4096, alignment = 256;
constexpr std::byte guardByte{0xfd}, freshByte{0xff};

} // namespace

/// The guard up to the allocation's begin, and `guard` bytes after it.
bool Allocations::Allocation::intact() const {
  const auto *begin = reinterpret_cast<const std::byte *>(range.begin);
  const auto *end = reinterpret_cast<const std::byte *>(range.end);
  for (size_t i = 1; i <= guard; ++i)
    if (begin[-ptrdiff_t(i)] != guardByte || end[i - 1] != guardByte)
      return false;
  return true;
}

uint64_t Allocations::allocate(int device, size_t bytes, size_t limit) {
  size_t taken = used(device);
  if (taken > limit || bytes > limit - taken)
    return 0;
  std::unique_lock lock(mutex);
  size_t whole = bytes + 2 * guard + 2 * alignment;
  std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[whole]);
  if (!memory)
    return 0;
  uint64_t begin = reinterpret_cast<uint64_t>(memory.get()) + guard;
  // Aligned to what the driver promises and to no more, so that kernels do not
  // come to rely on it.
  begin = (begin + 2 * alignment - 1) / (2 * alignment) * (2 * alignment);
  begin += begin - guard >= reinterpret_cast<uint64_t>(memory.get()) + alignment
               ? -alignment
               : alignment;
  std::memset(memory.get(), int(guardByte), whole);
  std::memset(reinterpret_cast<void *>(begin), int(freshByte), bytes);
  live[begin] =
      Allocation{device, bytes, std::move(memory), {begin, begin + bytes}};
  return begin;
}

bool Allocations::release(uint64_t address, bool &intact) {
  std::unique_lock lock(mutex);
  auto it = live.find(address);
  if (it == live.end())
    return false;
  intact = it->second.intact();
  live.erase(it);
  return true;
}

size_t Allocations::releaseAll(int device) {
  std::unique_lock lock(mutex);
  size_t bytes = 0;
  std::erase_if(live, [&](const auto &entry) {
    bool here = entry.second.device == device;
    bytes += here ? entry.second.bytes : 0;
    return here;
  });
  return bytes;
}

size_t Allocations::used(int device) const {
  std::shared_lock lock(mutex);
  size_t bytes = 0;
  for (const auto &[begin, allocation] : live)
    bytes += allocation.device == device ? allocation.bytes : 0;
  return bytes;
}

const Allocations::Allocation *Allocations::holding(uint64_t address) const {
  auto it = live.upper_bound(address);
  if (it == live.begin())
    return nullptr;
  const Allocation &before = std::prev(it)->second;
  return before.range.covers(address, 1) ? &before : nullptr;
}

ptx::Range Allocations::find(uint64_t address, int device) const {
  std::shared_lock lock(mutex);
  const Allocation *found = holding(address);
  bool here = found && (device < 0 || found->device == device);
  return here ? found->range : ptx::Range();
}

bool Allocations::covers(uint64_t address, size_t bytes) const {
  return bytes == 0 || find(address, -1).covers(address, bytes);
}

std::string Allocations::describe(uint64_t address) const {
  std::shared_lock lock(mutex);
  auto write = [&](const Allocation &near) {
    return absl::StrFormat(
        "an allocation of %u bytes on device %d begins at 0x%x, %d bytes "
        "before it",
        near.bytes, near.device, near.range.begin,
        int64_t(address - near.range.begin));
  };
  if (live.empty())
    return "nothing is allocated";
  auto next = live.upper_bound(address);
  if (next == live.begin())
    return write(next->second);
  const Allocation &before = std::prev(next)->second;
  bool nextIsNearer = next != live.end() && !before.range.covers(address, 1) &&
                      next->first - address < address - before.range.end;
  return write(nextIsNearer ? next->second : before);
}

} // namespace meshwork::emulator
