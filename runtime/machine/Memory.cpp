#include "runtime/machine/Memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/machine/ControlGroup.h"
#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace meshwork::runtime {
namespace {
constexpr uint64_t hugePage = uint64_t{2} << 20;
constexpr uint64_t pageBytes = 4096;

/// A line "Name:   123 kB" of a file of the kernel, in bytes, or `missing`.
uint64_t kernelValue(const char *path, const std::string &name,
                     uint64_t missing) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    uint64_t value = 0;
    if (line.compare(0, name.size(), name) == 0 &&
        std::sscanf(line.c_str() + name.size(), ": %" SCNu64, &value) == 1)
      return value * 1024;
  }
  return missing;
}

uint64_t addressSpaceBytes() {
  struct rlimit limit;
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return UINT64_MAX;
  uint64_t used = kernelValue("/proc/self/status", "VmSize", 0);
  return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

/// Touches every page, in one call where the kernel can.
void populate(std::byte *start, uint64_t bytes) {
  if (::madvise(start, bytes, MADV_POPULATE_WRITE) == 0)
    return;
  for (uint64_t at = 0; at < bytes; at += pageBytes)
    *reinterpret_cast<volatile std::byte *>(start + at) = std::byte{0};
}
} // namespace

absl::StatusOr<Arena> Arena::create(uint64_t bytes) {
  Arena arena;
  if (bytes == 0)
    return arena;
  uint64_t length = (bytes + pageBytes - 1) / pageBytes * pageBytes;
  void *memory =
      length > UINT64_MAX - hugePage
          ? MAP_FAILED
          : ::mmap(nullptr, length + hugePage, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return absl::ResourceExhaustedError(
        absl::StrCat("the system gives no arena of ", bytesText(bytes), ": ",
                     std::strerror(errno)));
  // Mapped larger and cut at both ends, for the alignment.
  uintptr_t from = reinterpret_cast<uintptr_t>(memory);
  uintptr_t start = (from + hugePage - 1) / hugePage * hugePage;
  if (start > from)
    ::munmap(memory, start - from);
  if (uint64_t rest = from + hugePage - start)
    ::munmap(reinterpret_cast<void *>(start + length), rest);
  arena.start = reinterpret_cast<std::byte *>(start);
  arena.bytes = length;
  ::madvise(arena.start, length, MADV_HUGEPAGE);
  populate(arena.start, length);
  return arena;
}

Arena::Arena(Arena &&other) noexcept
    : start(std::exchange(other.start, nullptr)),
      bytes(std::exchange(other.bytes, 0)) {}

Arena &Arena::operator=(Arena &&other) noexcept {
  std::swap(start, other.start);
  std::swap(bytes, other.bytes);
  return *this;
}

Arena::~Arena() {
  if (start)
    ::munmap(start, bytes);
}

uint64_t availableBytes() {
  return std::min({kernelValue("/proc/meminfo", "MemAvailable", UINT64_MAX),
                   controlGroupBytes(), addressSpaceBytes()});
}

uint64_t residentBytes() {
  return kernelValue("/proc/self/status", "VmRSS", 0);
}

uint64_t peakResidentBytes() {
  return kernelValue("/proc/self/status", "VmHWM", 0);
}

void resetPeakResident() { std::ofstream("/proc/self/clear_refs") << "5"; }

std::string bytesText(uint64_t bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  return absl::StrFormat("%.*f %s", unit == 0 ? 0 : 1, value, units[unit]);
}

} // namespace meshwork::runtime
