#include "runtime/device/cuda/TimingNumbers.h"
#include "lib/Plan/StatusMacros.h"
#include <algorithm>
#include <random>

namespace meshwork::runtime::cuda {
namespace {
/// Not a power of two: rows of a matrix are not all the same.
constexpr size_t count = 999'979;

/// 1/8 to 2 as bf16, and so as the upper half of an f32. As two 8-bit floats
/// the upper byte is 1.5 to 1.875; bit 6 is zero, so that the lower one is
/// below 2 too.
uint16_t numberOf(uint32_t random) {
  constexpr uint32_t eighth = 0x3e00, isRandom = 0x81bf;
  return static_cast<uint16_t>(eighth | (random & isRandom));
}
} // namespace

absl::Status fillForTiming(const Driver &driver, Queue &queue, Staging &staging,
                           DevicePtr memory, uint64_t bytes) {
  std::mt19937 random(1);
  std::vector<uint16_t> numbers(count);
  for (uint16_t &number : numbers)
    number = numberOf(random());
  absl::Span<const std::byte> block(
      reinterpret_cast<const std::byte *>(numbers.data()),
      std::min<uint64_t>(bytes, count * sizeof(uint16_t)));
  MESHWORK_RETURN_IF_ERROR(staging.write(memory, block));
  for (uint64_t done = block.size(); done < bytes;) {
    uint64_t more = std::min(done, bytes - done);
    MESHWORK_RETURN_IF_ERROR(driver.check(
        driver.copyOnDevice(memory + done, memory, more, queue.stream()),
        "filling memory with numbers"));
    done += more;
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime::cuda
