// What cuTensorMapEncodeTiled writes into the 128 bytes of a tensor map: a
// tensor in global memory, and the box that one copy moves. NVIDIA keeps its
// layout secret; this one is the emulator's own, so a map of the real driver
// is a fault here.
#pragma once

#include "absl/status/statusor.h"

#include <cstdint>

namespace meshwork::ptx {

struct alignas(64) TensorMap {
  static constexpr uint64_t magicNumber = 0x70616d20736e6574; // "tens map"
  static constexpr unsigned maxRank = 5;
  uint64_t magic = 0;
  uint64_t address = 0;
  uint64_t dims[maxRank] = {};    // elements, the innermost dim first
  uint64_t strides[maxRank] = {}; // bytes; strides[0] is an element
  uint16_t box[maxRank] = {};     // elements
  uint8_t rank = 0;
  bool swizzled = false; // swizzle128 below

  uint32_t rowBytes() const { return box[0] * uint32_t(strides[0]); }
  uint32_t boxBytes() const {
    uint32_t bytes = rowBytes();
    for (unsigned d = 1; d < rank; ++d)
      bytes *= box[d];
    return bytes;
  }
};
static_assert(sizeof(TensorMap) == 128);

/// The arguments of cuTensorMapEncodeTiled under its names for them.
struct TensorMapRequest {
  int dataType;
  unsigned rank;
  uint64_t globalAddress;
  const uint64_t *globalDim, *globalStrides;
  const uint32_t *boxDim, *elementStrides;
  int interleave, swizzle, l2Promotion, oobFill;
};
/// invalidArgument where the driver says so, unimplemented for what only the
/// hardware can do.
absl::StatusOr<TensorMap> encodeTensorMap(const TensorMapRequest &request);

/// SWIZZLE_128B, of TMA and of wgmma: the place of a byte in shared memory
/// when the layout without swizzle puts it at `address`. Eight rows of 128
/// bytes, each with its 16-byte chunks in another order.
constexpr uint32_t swizzle128(uint32_t address) {
  return address ^ (address >> 7 & 7) << 4;
}

} // namespace meshwork::ptx
