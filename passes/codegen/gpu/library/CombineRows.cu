// A token's rows added up along one binary tree, as on the CPU. Between two
// neighbours is a *gap*: the highest bit in which their numbers differ. Two
// sums are added once the gap behind them is wider than the one between them.
//
// A block has a token. Its threads put the rows in the order of the tree, one
// each, and say how many sums it completes. Then each adds up its own columns;
// sums that wait for their right-hand side are on a stack in shared memory.
#include "passes/codegen/gpu/library/Warp.h"

namespace meshwork {
namespace {

struct Leaf {
  i32 row, sums; // that this leaf completes
};

/// What the choices of a token mean.
struct Token {
  const i32 *places, *choices;
  i32 k;
  i64 rows;

  __device__ bool hasRow(i32 i) const {
    return static_cast<u64>(static_cast<i64>(places[i])) <
           static_cast<u64>(rows);
  }
  __device__ bool isBefore(i32 a, i32 b) const {
    u32 first = static_cast<u32>(choices[a]),
        second = static_cast<u32>(choices[b]);
    return first != second ? first < second : a < b;
  }
  /// How many leaves are before choice i, which is one.
  __device__ i32 placeOf(i32 i) const {
    i32 place = 0;
    for (i32 other = 0; other < k; ++other)
      place += hasRow(other) && isBefore(other, i);
    return place;
  }
};

/// The bits of a gap; 0 between equal numbers.
__device__ inline i32 gapBetween(u32 a, u32 b) {
  return a == b ? 0 : 32 - __builtin_clz(a ^ b);
}

/// How many sums leaf `at` completes. Between sums that wait gaps become
/// narrower; those no wider than the leaf's own are done.
__device__ inline i32 sumsOf(const u32 *numbers, i32 at, i32 count) {
  i32 own = at + 1 == count ? 33 : gapBetween(numbers[at], numbers[at + 1]),
      widest = -1, sums = 0;
  for (i32 i = at - 1; i >= 0; --i) {
    i32 gap = gapBetween(numbers[i], numbers[i + 1]);
    if (gap > own)
      break;
    sums += gap > widest;
    widest = largerOf(widest, gap);
  }
  return sums;
}

/// In shared memory, in this order; `sums` a row of the block for each level.
struct Scratch {
  u32 *numbers;
  Leaf *leaves;
  float *sums;

  __device__ explicit Scratch(i64 k) {
    leaves = reinterpret_cast<Leaf *>(meshwork_shared);
    numbers = reinterpret_cast<u32 *>(leaves + k);
    i64 bytes = k * static_cast<i64>(sizeof(Leaf) + sizeof(u32));
    sums = reinterpret_cast<float *>(meshwork_shared + (bytes + 31) / 32 * 32);
  }
};

/// Writes the leaves in their order, all threads; their number.
__device__ inline i32 sortLeaves(const Token &token, const Scratch &scratch,
                                 i64 threads) {
  i32 first = static_cast<i32>(threadInBlock()), count = 0;
  for (i32 i = 0; i < token.k; ++i)
    count += token.hasRow(i);
  for (i32 i = first; i < token.k; i += static_cast<i32>(threads))
    if (token.hasRow(i)) {
      i32 place = token.placeOf(i);
      scratch.numbers[place] = static_cast<u32>(token.choices[i]);
      scratch.leaves[place].row = token.places[i];
    }
  meetBlock();
  for (i32 i = first; i < count; i += static_cast<i32>(threads))
    scratch.leaves[i].sums = sumsOf(scratch.numbers, i, count);
  meetBlock();
  return count;
}

/// The sum of N columns from `column` on. `stack` is this thread's, a level
/// `step` vectors apart.
template <int N, typename T>
__device__ inline Vector<float, N> addUp(const T *column, i64 stride,
                                         const Leaf *leaves, i32 count,
                                         Vector<float, N> *stack, i64 step) {
  Vector<float, N> sum = 0.0f, next = 0.0f;
  if (count > 0)
    next = load<N>(column + leaves[0].row * stride);
  i32 waiting = 0;
  for (i32 i = 0; i < count; ++i) {
    sum = next;
    if (i + 1 < count)
      next = load<N>(column + leaves[i + 1].row * stride);
    for (i32 left = leaves[i].sums; left > 0; --left)
      sum = stack[--waiting * step] + sum;
    if (i + 1 < count)
      stack[waiting++ * step] = sum;
  }
  return sum;
}
} // namespace

/// out[t] = the sum of the rows src[places[t, i]], i < k, by choices[t, i]; 0
/// without any. A block has a token; each of its threads takes `vector` columns
/// of `width`, and what follows `threads` times as many. Strides in elements.
DEVICE_FUNCTION void meshwork_combine_rows(const void *src, const i32 *places,
                                           const i32 *choices, void *out,
                                           i64 threads, i64 k, i64 rows,
                                           i64 width, i64 srcStride,
                                           i64 outStride, i64 srcBytes,
                                           i64 outBytes, i64 vector) {
  i64 at = blockInGrid();
  Token token = {places + at * k, choices + at * k, static_cast<i32>(k), rows};
  Scratch scratch(k);
  i32 count = sortLeaves(token, scratch, threads);
  withType(srcBytes, [&](auto *srcType) {
    withType(outBytes, [&](auto *outType) {
      withWidth(vector, [&](auto w) {
        constexpr int n = decltype(w)::value;
        auto *from = static_cast<decltype(srcType)>(const_cast<void *>(src));
        auto *to = static_cast<decltype(outType)>(out) + at * outStride;
        auto *stack = reinterpret_cast<Vector<float, n> *>(scratch.sums) +
                      threadInBlock();
        for (i64 column = threadInBlock() * vector; column < width;
             column += threads * vector)
          store<n>(to + column,
                   addUp<n>(from + column, srcStride, scratch.leaves, count,
                            stack, threads));
      });
    });
  });
}

} // namespace meshwork
