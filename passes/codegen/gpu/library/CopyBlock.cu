// A rank's part of a dim, with zeros behind its end.
#include "passes/codegen/gpu/library/Device.h"

namespace meshwork {
namespace {
struct Strides { // bytes
  i64 outer, row, word;
};

template <typename Word>
__device__ void copy(const u8 *src, i64 first, u8 *dst, i64 index, i64 rows,
                     i64 words, i64 srcRows, Strides from, Strides to) {
  i64 word = index % words, row = index / words % rows,
      outer = index / words / rows;
  Word value = 0;
  if (first + row < srcRows)
    value = *reinterpret_cast<const Word *>(
        src + outer * from.outer + (first + row) * from.row + word * from.word);
  *reinterpret_cast<Word *>(dst + outer * to.outer + row * to.row +
                            word * to.word) = value;
}
} // namespace

/// dst[o, r, w] = src[o, first + r, w], zero where src has no such row, for o <
/// outer, r < rows, w < words of `wordBytes`; one word each of `threads`
/// threads.
DEVICE_FUNCTION void meshwork_copy_block(const u8 *src, const i32 *first,
                                         u8 *dst, i64 threads, i64 outer,
                                         i64 rows, i64 words, i64 srcRows,
                                         i64 srcOuter, i64 srcRow, i64 srcWord,
                                         i64 dstOuter, i64 dstRow, i64 dstWord,
                                         i64 wordBytes) {
  i64 index = blockInGrid() * threads + threadInBlock();
  if (index >= outer * rows * words)
    return;
  i64 begin =
      *first < 0
          ? srcRows
          : *first; // A plan of ours has no negative one; nothing is there.
  Strides from = {srcOuter, srcRow, srcWord}, to = {dstOuter, dstRow, dstWord};
  if (wordBytes == 16)
    copy<Vector<u32, 4>>(src, begin, dst, index, rows, words, srcRows, from,
                         to);
  else if (wordBytes == 8)
    copy<Vector<u32, 2>>(src, begin, dst, index, rows, words, srcRows, from,
                         to);
  else if (wordBytes == 4)
    copy<u32>(src, begin, dst, index, rows, words, srcRows, from, to);
  else if (wordBytes == 1)
    copy<u8>(src, begin, dst, index, rows, words, srcRows, from, to);
  else
    copy<u16>(src, begin, dst, index, rows, words, srcRows, from, to);
}

} // namespace meshwork
