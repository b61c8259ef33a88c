// One value everywhere.
#include "passes/codegen/gpu/library/Device.h"

namespace meshwork {

/// `bytes` bytes become the low 4 of `pattern`, which repeats every 4 bytes (2
/// where they end within it); one word of `wordBytes`, 16, 4 or 2, for each of
/// `threads` threads.
DEVICE_FUNCTION void meshwork_fill(u8 *dst, i64 threads, i64 rows,
                                   i64 rowStride, i64 bytes, i64 pattern,
                                   i64 wordBytes) {
  i64 words = (bytes + wordBytes - 1) / wordBytes,
      index = blockInGrid() * threads + threadInBlock(), row = index / words,
      at = (index - row * words) * wordBytes;
  if (row >= rows)
    return;
  dst += row * rowStride;
  u32 word = static_cast<u32>(pattern);
  if (wordBytes == 16 && at + 16 <= bytes) {
    *reinterpret_cast<Vector<u32, 4> *>(dst + at) = Vector<u32, 4>(word);
    return;
  }
  i64 end = at + wordBytes < bytes ? at + wordBytes : bytes;
  if (wordBytes == 4 && at + 4 <= bytes)
    *reinterpret_cast<u32 *>(dst + at) = word;
  else
    for (; at < end; at += 2)
      *reinterpret_cast<u16 *>(dst + at) =
          static_cast<u16>(word >> (at % 4 * 8));
}

} // namespace meshwork
