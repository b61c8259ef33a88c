// What kernels of sm_90a are written with: copies that hardware makes, and
// barriers that count their bytes. PTX ISA 8.0, "Data Movement and Conversion
// Instructions: Bulk copy", "mbarrier".
//
// A tile lies in shared memory as columns of boxes. A row is 64 elements of
// bf16, 128 bytes. Its 16-byte chunks are exchanged by the row's number, so
// that no two of eight rows meet in a bank. TMA writes tiles so and tensor
// cores read them so ("128-byte swizzle").
#pragma once

#include "runtime/device/cuda/kernels/Formats.h"
#include "runtime/device/cuda/kernels/WgmmaAttention.h"

#define MESHWORK_INLINE                                                        \
  __attribute__((device, always_inline)) inline // Registers have no address.
#define MESHWORK_LAMBDA __attribute__((always_inline))

namespace meshwork::runtime::cuda {

inline constexpr int rowBytes = 2 * boxColumns;
/// Of a warpgroup: threads, and rows of a product.
inline constexpr int warpgroupThreads = 128, warpgroupRows = boxRows;

/// Bytes of one column of a tile's boxes.
constexpr int columnBytes(int rows) { return rows * rowBytes; }

/// What follows from it is worked out where it stands, not once before a loop:
/// registers are scarce.
MESHWORK_INLINE U32 fresh(U32 value) {
  asm volatile("" : "+r"(value));
  return value;
}

// --- Barriers in shared memory: 8 bytes each, by their address there.

MESHWORK_INLINE void initBarrier(U32 barrier, U32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier),
               "r"(arrivals)
               : "memory");
}
/// Barriers that were made are seen by the hardware that copies.
MESHWORK_INLINE void publishBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
MESHWORK_INLINE void arrive(U32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier)
               : "memory");
}
/// Arrives, and so many bytes must, too.
MESHWORK_INLINE void arriveExpecting(U32 barrier, U32 bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
      "r"(bytes)
      : "memory");
}
/// Whether the phase of this parity has ended, after a short wait; that before
/// the first one has.
MESHWORK_INLINE bool hasEnded(U32 barrier, U32 parity) {
  U32 isDone;
  asm volatile("{\n\t.reg .pred done;\n\t"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n\t"
               "selp.u32 %0, 1, 0, done;\n\t}"
               : "=r"(isDone)
               : "r"(barrier), "r"(parity)
               : "memory");
  return isDone;
}
MESHWORK_INLINE void waitFor(U32 barrier, U32 parity) {
  while (!hasEnded(barrier, parity))
    ;
}
/// The same, but a fault in the kernel is an error of the launch and not a
/// hang: a wait takes microseconds, so this many polls would never end. For who
/// waits last in any deadlock and has a register left to count.
inline constexpr U32 mostPolls = 1 << 24;
MESHWORK_INLINE void waitOrTrap(U32 barrier, U32 parity) {
  for (U32 polls = 0; !hasEnded(barrier, parity); ++polls)
    if (polls == mostPolls)
      __builtin_trap();
}
/// The lanes of a warp: what they have read before may be overwritten behind
/// it.
MESHWORK_INLINE void meetLanes() {
  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}
/// For some warps of the block: barriers 1 to 15.
MESHWORK_INLINE void meetThreads(U32 number, U32 threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// --- Copies, each started by one thread.

struct BoxAt {
  int column, row, head, sample;
};

MESHWORK_INLINE U64 addressOf(const TensorMap &map) {
  return reinterpret_cast<U64>(&map);
}
/// A box to `to`; the barrier gets all of its bytes, also those of rows and
/// columns that do not exist, which become zeros.
MESHWORK_INLINE void loadBox(U32 to, const TensorMap &map, const BoxAt &at,
                             U32 barrier) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile."
               "mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
               "[%6];" ::"r"(to),
               "l"(addressOf(map)), "r"(at.column), "r"(at.row), "r"(at.head),
               "r"(at.sample), "r"(barrier)
               : "memory");
}
/// `bytes` that lie together, a multiple of 16 as are both places.
MESHWORK_INLINE void loadBytes(U32 to, U64 from, U32 bytes, U32 barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1], %2, [%3];" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}
MESHWORK_INLINE void storeBox(const TensorMap &map, const BoxAt &at, U32 from) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group "
               "[%0, {%1, %2, %3, %4}], [%5];" ::"l"(addressOf(map)),
               "r"(at.column), "r"(at.row), "r"(at.head), "r"(at.sample),
               "r"(from)
               : "memory");
}
/// What this thread has stored is one group, which it may wait for.
MESHWORK_INLINE void commitStores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Until the shared memory of all of this thread's stores has been read.
MESHWORK_INLINE void finishStores() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
/// What this thread wrote to shared memory is seen by copies and tensor cores.
MESHWORK_INLINE void publishShared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// `rows` rows of one head, as a tile of `columns` columns.
template <int rows, int columns>
MESHWORK_INLINE void loadTile(U32 to, const TensorMap &map, int row, int head,
                              int sample, U32 barrier) {
#pragma unroll
  for (int column = 0; column < columns; column += boxColumns)
#pragma unroll
    for (int r = 0; r < rows; r += warpgroupRows)
      loadBox(to + column / boxColumns * columnBytes(rows) + columnBytes(r),
              map, {column, row + r, head, sample}, barrier);
}

/// A warpgroup takes registers that another one has given back, or gives back:
/// so many each thread has then.
template <int count> MESHWORK_INLINE void takeRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count> MESHWORK_INLINE void giveRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

} // namespace meshwork::runtime::cuda
