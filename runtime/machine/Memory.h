// Memory of the process: what there is, what is used, and arenas.
#pragma once

#include "absl/status/statusor.h"
#include <cstddef>
#include <cstdint>
#include <string>

namespace meshwork::runtime {

/// Zeroed memory that is resident from the start, so that a run that has
/// started cannot run out of it. Aligned to 2 MiB, in huge pages where whole
/// ones fit; pages lie on the node of the thread that makes it.
class Arena {
public:
  /// resourceExhausted when the system does not give `bytes`; 0 is fine.
  static absl::StatusOr<Arena> create(uint64_t bytes);
  Arena() = default;
  Arena(Arena &&other) noexcept;
  Arena &operator=(Arena &&other) noexcept;
  ~Arena();

  std::byte *data() const { return start; }
  uint64_t size() const { return bytes; }

private:
  std::byte *start = nullptr;
  uint64_t bytes = 0;
};

/// Bytes this process may still take: the least of what the machine has free,
/// its control groups' limits and its own address space limit.
uint64_t availableBytes();

/// Resident bytes of this process, now and at most so far; 0 where the system
/// does not tell.
uint64_t residentBytes();
uint64_t peakResidentBytes();
/// Makes the peak start again from now, where the system can.
void resetPeakResident();

/// "1.5 GiB", "12 KiB": for people.
std::string bytesText(uint64_t bytes);

} // namespace meshwork::runtime
