// The frame around a plan's FlatBuffer: what a reader checks before it looks
// inside. Shared by the compiler (writes) and the runtime (reads).
//
//   bytes 0..7    magic "MWPLAN\r\n". The line end reveals text-mode copies
//   8..11         format version, little endian
//   12..15        size of this frame, 64
//   16..23        size of the payload. It reaches to the end of the file
//   24..39        XXH3-128 of the payload as stored, canonical byte order
//   40..47        XXH3-64 of bytes 0..39
//   48..63        zero
//
// The payload is the FlatBuffer, or one Zstandard frame (RFC 8878) with its
// size that unpacks to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace meshwork::plan {

inline constexpr char magic[8] = {'M', 'W', 'P', 'L', 'A', 'N', '\r', '\n'};
inline constexpr uint32_t formatVersion = 18;
inline constexpr uint32_t frameBytes = 64;
/// A view index that means "no view".
inline constexpr uint32_t noView = 0xffffffffu;
/// The source of a permute's rank that receives nothing: zeros.
inline constexpr uint32_t noSource = 0xffffffffu;
/// FlatBuffers addresses 2 GiB; its verifier asserts above.
inline constexpr uint64_t maxPayloadBytes = (uint64_t{1} << 31) - 1024;

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "plans are little endian");

/// Fills `frame` (frameBytes long) for `payload`.
inline void writeFrame(const void *payload, uint64_t payloadBytes,
                       unsigned char *frame) {
  std::memset(frame, 0, frameBytes);
  std::memcpy(frame, magic, sizeof(magic));
  uint32_t version = formatVersion, size = frameBytes;
  std::memcpy(frame + 8, &version, 4);
  std::memcpy(frame + 12, &size, 4);
  std::memcpy(frame + 16, &payloadBytes, 8);
  XXH128_canonical_t digest;
  XXH128_canonicalFromHash(&digest, XXH3_128bits(payload, payloadBytes));
  std::memcpy(frame + 24, digest.digest, 16);
  uint64_t frameHash = XXH3_64bits(frame, 40);
  std::memcpy(frame + 40, &frameHash, 8);
}

} // namespace meshwork::plan
