// How attention's device functions share their work: what a launch needs, for
// the functions themselves and for the compiler that launches them.
#pragma once

namespace meshwork::attention {

/// Of a launch: `queries` by `keys` is the block of scores that one thread
/// block has at a time.
struct Tile {
  int queries, keys, threads, sharedBytes;
};

/// Head dims that have a function; rows are padded to the next of them.
inline constexpr int classes[] = {16, 32, 64, 80, 96, 128, 192, 256};
/// Of the workspace: rows of a head are padded to this many queries.
inline constexpr int paddedQueries = 128;
/// Rows per block of the first kernel of the gradient.
inline constexpr int rowSumThreads = 256;

/// The class of `headDim`; 0: there is none.
constexpr int classOf(long long headDim) {
  for (int padded : classes)
    if (headDim <= padded)
      return padded;
  return 0;
}

/// f32: threads form a square, and each has a square of the scores.
constexpr int plainSide(int d) { return d <= 64 ? 64 : 32; }
inline constexpr int plainThreads = 256;
/// `tiles` of rows, a square of probabilities, two values per query. Rows are
/// padded by 4 elements against bank conflicts.
constexpr int plainBytes(int d, int tiles) {
  int side = plainSide(d);
  return 4 * side * (tiles * (d + 4) + (side + 4) + 2);
}

/// A block keeps queries and walks keys and values, bf16 in two buffers.
constexpr Tile forwardTile(bool bf16, int d) {
  if (!bf16)
    return {plainSide(d), plainSide(d), plainThreads, plainBytes(d, 3)};
  int queries = d <= 128 ? 128 : 64, keys = d <= 80 ? 64 : 32;
  return {queries, keys, 128, (queries + 4 * keys) * d * 2};
}

/// dk and dv: a block keeps keys and walks queries; bf16 in two buffers.
constexpr Tile keyGradTile(bool bf16, int d) {
  if (!bf16)
    return {plainSide(d), plainSide(d), plainThreads, plainBytes(d, 4)};
  int keys = d <= 128 ? 128 : 64, queries = d <= 128 ? 64 : 32;
  int threads = d <= 64 || d > 128 ? 128 : 256;
  return {queries, keys, threads,
          (2 * keys + 4 * queries) * d * 2 + 2 * queries * 8};
}
/// Above 128 one block has half of the columns of dk and dv.
constexpr int keyGradParts(bool bf16, int d) { return bf16 && d > 128 ? 2 : 1; }

/// dq: a block keeps queries and walks keys.
constexpr Tile queryGradTile(bool bf16, int d) {
  if (!bf16)
    return {plainSide(d), plainSide(d), plainThreads, plainBytes(d, 4)};
  int queries = d <= 128 ? 128 : 64, keys = 32;
  return {queries, keys, 128, (2 * queries + 2 * keys) * d * 2};
}

constexpr long long blocksOf(long long count, int size) {
  return (count + size - 1) / size;
}

// Grids.
constexpr long long forwardGrid(bool bf16, int d, long long batch,
                                long long rows, long long heads) {
  return batch * heads * blocksOf(rows, forwardTile(bf16, d).queries);
}
constexpr long long rowSumGrid(long long batch, long long rows,
                               long long heads) {
  return batch * heads * blocksOf(rows, paddedQueries);
}
constexpr long long keyGradGrid(bool bf16, int d, long long batch,
                                long long sequence, long long kvHeads) {
  return batch * kvHeads * blocksOf(sequence, keyGradTile(bf16, d).keys) *
         keyGradParts(bf16, d);
}
constexpr long long queryGradGrid(bool bf16, int d, long long batch,
                                  long long rows, long long heads) {
  return batch * heads * blocksOf(rows, queryGradTile(bf16, d).queries);
}

/// Of the gradient: two f32 for each row of scores, see README.md.
constexpr long long workspaceBytes(long long batch, long long rows,
                                   long long heads) {
  return batch * heads * blocksOf(rows, paddedQueries) * paddedQueries * 8;
}

} // namespace meshwork::attention
