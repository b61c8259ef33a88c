// What the kernels of WgmmaAttention.cu are told: the one header that the
// host's and the device's compiler share, so it includes nothing. Each takes
// its struct by value; places in memory are addresses.
//
//              writes     a block keeps   and walks
//   forward    out, lse   128 queries     the keys
//   rowSums    lse and delta of each query, for the two below
//   keyGrad    dk, dv     128 keys        the queries
//   queryGrad  dq         128 queries     the keys
//
// Each has two warpgroups that compute 64 rows each, and one that fetches for
// them. Heads have up to 64 elements, or up to 128.
#pragma once

namespace meshwork::runtime::cuda {

/// A tensor in memory as the driver has described it (cuTensorMapEncodeTiled):
/// [sample, head, row, column] of bf16, in boxes of 64 rows and 64 columns.
/// CUDA 13 aligns it so; the driver asks for 64 bytes.
struct alignas(128) TensorMap {
  unsigned char bytes[128];
};
inline constexpr int boxRows = 64, boxColumns = 64;

/// Of every thread block: rows that it keeps, and threads.
inline constexpr int wgmmaRows = 128, wgmmaThreads = 3 * 128;
/// Registers of each thread at the launch: all of 65536, in multiples of 8.
inline constexpr int registersAtLaunch = 65536 / wgmmaThreads / 8 * 8;
/// Bytes of a barrier, of the notes that the producer leaves with what is kept
/// (a number, a gap, a range), and room to begin a tile at a multiple of 1024.
inline constexpr int barrierBytes = 8, noteBytes = 16, alignmentBytes = 1024;

/// Tiles in shared memory that one warpgroup fills and the others empty in
/// turn.
template <int rowCount, int slotCount, int moreBytes = 0> struct WgmmaRing {
  static constexpr int rows = rowCount, slots = slotCount, more = moreBytes;
};

/// The shared memory of a kernel with heads of D elements: tiles of 64 rows
/// that it keeps, tiles that results pass through, a ring, barriers.
template <int D, int keptTiles, int stagedTiles, typename R, int tilesOfSlot>
struct WgmmaPlan {
  using Ring = R;
  static constexpr int tile = 64 * D * 2, kept = keptTiles * tile,
                       staged = stagedTiles * tile,
                       slot = tilesOfSlot * R::rows * D * 2 + R::more,
                       ring = R::slots * slot,
                       // Full and empty, of each slot and of what is kept.
      barriers = 2 * (R::slots + 1) * barrierBytes;
  static constexpr int sharedBytes =
      kept + staged + ring + barriers + noteBytes + alignmentBytes;
  static_assert(sharedBytes <= 227 * 1024, "more than a block can have");
};

/// Bytes of the row values of a query, and of a slot's queries, padded.
inline constexpr int rowValueBytes = 8, rowValuesOfSlot = 1024;

template <int D>
using ForwardPlan =
    WgmmaPlan<D, 2, 2, WgmmaRing<128, (D == 64 ? 6 : 4)>, /*k or v*/ 1>;
template <int D>
using KeyGradPlan =
    WgmmaPlan<D, 4, 4, WgmmaRing<64, (D == 64 ? 4 : 2), rowValuesOfSlot>,
              /*q and dout*/ 2>;
template <int D>
using QueryGradPlan = WgmmaPlan<D, 4, 2, WgmmaRing<(D == 64 ? 128 : 64), 6>, 1>;

/// Which tokens of a sequence rows are: from `offset` on they are `count`
/// tokens next to each other, the first `begin`; in two runs, the second maybe
/// empty. Other rows are padding.
struct WgmmaRuns {
  int begin[2], count[2], offset[2];
};

/// Which pairs of a query and a key count: query i sees key j when j <= i
/// (causal), i - j < window (window > 0), and j >= documents[sample, row]. Such
/// positions never fall along a sequence; others than 0 to i are read as these.
struct WgmmaShape {
  int rows, columns; // of queries and of keys
  int sequence;      // keys in all, of which these may be a part
  int heads, kvHeads;
  int window, causal;
  float scale;
  WgmmaRuns queries, keys;
  unsigned long long documents; // i32 [samples, rows]; 0: one in each
};

/// A result that is f32: where, and its strides of sample, head and row. It is
/// bf16, by its map, where the address is 0.
struct WgmmaWide {
  unsigned long long address;
  long long strides[3];
  int rows, headDim;
};

/// What there is to do: `blocks` of 128 rows for each of `pairs` of a sample
/// and a head, block 0 the longest. As many pairs as `together` says are done
/// side by side, so that their keys stay in the L2 cache. Thread blocks take
/// the next piece of work from the counter, a u32 in memory that is 0 before
/// and after.
struct WgmmaWork {
  int blocks, pairs, together;
  unsigned long long counter;
};

struct ForwardTask {
  TensorMap q, k, v, out;
  unsigned long long lse; // f32: natural logarithm of each row's sum
  long long lseSample, lseHead;
  WgmmaWide wideOut;
  WgmmaShape shape;
  WgmmaWork work;
};

/// For each sample, head and query, padded to 128 queries: lse * log2(e), and
/// the sum over d of dout * out; (infinity, 0) of padding, and of what sees no
/// key.
struct RowSumsTask {
  // Of bf16, rows at multiples of 16 bytes; of f32; what is written.
  unsigned long long out, dout, lse, rowValues;
  long long outStrides[3], doutStrides[3], lseStrides[2]; // sample, head, row
  int rows, heads, headDim;
  WgmmaRuns queries;
};
inline constexpr int rowSumThreads = 256;

struct KeyGradTask {
  TensorMap q, k, v, dout, dk, dv;
  unsigned long long rowValues;
  WgmmaWide wideDk, wideDv;
  WgmmaShape shape;
  WgmmaWork work; // pairs of a sample and a head of keys
};

struct QueryGradTask {
  TensorMap q, k, v, dout, dq;
  unsigned long long rowValues;
  WgmmaWide wideDq;
  WgmmaShape shape;
  WgmmaWork work;
};

} // namespace meshwork::runtime::cuda
