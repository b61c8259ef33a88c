// Which addresses a kernel may touch.
#pragma once

#include <cstdint>
#include <string>

namespace meshwork::ptx {

struct Range {
  uint64_t begin = 0, end = 0;
  bool covers(uint64_t address, uint64_t bytes) const {
    return address >= begin && address <= end && bytes <= end - address;
  }
};

/// Global memory. Ranges must stay valid while a kernel runs. Called from the
/// threads that run kernels.
class Memory {
public:
  virtual ~Memory() = default;
  /// The live allocation that holds `address`; an empty range if none does.
  virtual Range find(uint64_t address) const = 0;
  /// For messages: the allocation next to `address`.
  virtual std::string describe(uint64_t address) const = 0;
};

} // namespace meshwork::ptx
