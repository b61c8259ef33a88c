// Attention on GPUs of compute capability 9.0 (WgmmaAttention.h).
#include "runtime/device/cuda/kernels/WgmmaAttention.h"
#include "runtime/device/cuda/kernels/WgmmaForward.h"
#include "runtime/device/cuda/kernels/WgmmaQueryGrad.h"

namespace meshwork::runtime::cuda {
namespace {

extern "C" __attribute__((shared)) U8 wgmmaShared[];

MESHWORK_INLINE U32 sharedBegin() {
  return static_cast<U32>(reinterpret_cast<U64>(
      (__attribute__((address_space(3))) U8 *)wgmmaShared));
}

/// Registers of a thread that fetches, and of one that computes. A block gets
/// no more than it began with: who takes what is not there waits for ever.
inline constexpr int registersToFetch = 40, registersToCompute = 232;
static_assert(registersToFetch + 2 * registersToCompute <=
              3 * registersAtLaunch);

/// Fetches for one item after the other, and says which; a last one is none. It
/// waits until all items but that have been computed, so no deadlock outlives
/// its waits.
template <typename Kernel, typename Plan>
MESHWORK_INLINE void produceAll(Kernel &kernel, const Shared<Plan> &shared,
                                const WgmmaWork &work) {
  for (U32 round = 0;; ++round) {
    int number = takeNumber(work);
    Item item = itemOf(work, number);
    waitOrTrap(shared.keptEmpty, (round & 1) ^ 1);
    shared.tellNumber(number);
    if (!item.exists)
      return arrive(shared.keptFull);
    kernel.produce(item);
  }
}
template <typename Kernel, typename Plan>
MESHWORK_INLINE void computeAll(Kernel &kernel, const Shared<Plan> &shared,
                                const WgmmaWork &work) {
  for (U32 round = 0;; ++round) {
    waitFor(shared.keptFull, round & 1);
    Item item = itemOf(work, shared.toldNumber());
    if (!item.exists)
      break;
    kernel.compute(item);
  }
  if (isFirstOfWarpgroup())
    finishStores();
}

/// A block: one warpgroup fetches, by its first thread, the others compute.
template <template <int> class Kernel, template <int> class Plan, int D,
          typename Task>
MESHWORK_INLINE void runBlock(const Task &task) {
  Shared<Plan<D>> shared(sharedBegin());
  shared.prepare();
  Kernel<D> kernel(task, shared);
  if (isProducer()) {
    giveRegisters<registersToFetch>();
    if (isFirstOfWarpgroup())
      produceAll(kernel, shared, task.work);
  } else {
    takeRegisters<registersToCompute>();
    computeAll(kernel, shared, task.work);
  }
}

template <int D> MESHWORK_INLINE void sumRow(const RowSumsTask &task) {
  constexpr int lanes = D / 8, rowsOfBlock = rowSumThreads / lanes;
  int padded = (task.rows + wgmmaRows - 1) / wgmmaRows * wgmmaRows;
  int blocks = padded / rowsOfBlock, pair = blockOfGrid() / blocks;
  int row = blockOfGrid() % blocks * rowsOfBlock + thread() / lanes;
  int sample = pair / task.heads, head = pair % task.heads;
  int column = thread() % lanes * 8;
  bool exists = row < task.rows && tokenOf(task.queries, row) >= 0;
  float sum = 0;
  if (exists && column < task.headDim) {
    auto load = [&](U64 from, const long long *strides) {
      return *reinterpret_cast<const U128 *>(
          reinterpret_cast<const U16 *>(from) + sample * strides[0] +
          head * strides[1] + row * strides[2] + column);
    };
    U128 out = load(task.out, task.outStrides),
         dout = load(task.dout, task.doutStrides);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      sum = __builtin_fmaf(Bf16x8::get(out, i), Bf16x8::get(dout, i), sum);
  }
#pragma unroll
  for (int step = 1; step < lanes; step *= 2)
    sum += shuffled(sum, step);
  if (column != 0)
    return;
  const float *lse = reinterpret_cast<const float *>(task.lse) +
                     sample * task.lseStrides[0] + head * task.lseStrides[1];
  exists = exists && lse[row] != -infinity;
  float *to = reinterpret_cast<float *>(task.rowValues) +
              2 * (static_cast<long long>(pair) * padded + row);
  to[0] = exists ? lse[row] * log2e : infinity;
  to[1] = exists ? sum : 0;
}
} // namespace

/// All threads of a block may have all the registers that there are.
#define MESHWORK_BOUNDS(threads) __attribute__((launch_bounds(threads, 1)))
#define MESHWORK_WGMMA_KERNELS(D)                                              \
  KERNEL MESHWORK_BOUNDS(wgmmaThreads)                                         \
      wgmmaForward##D(const __attribute__((grid_constant)) ForwardTask task) { \
    runBlock<Forward, ForwardPlan, D>(task);                                   \
  }                                                                            \
  KERNEL MESHWORK_BOUNDS(wgmmaThreads)                                         \
      wgmmaKeyGrad##D(const __attribute__((grid_constant)) KeyGradTask task) { \
    runBlock<KeyGrad, KeyGradPlan, D>(task);                                   \
  }                                                                            \
  KERNEL MESHWORK_BOUNDS(wgmmaThreads) wgmmaQueryGrad##D(                      \
      const __attribute__((grid_constant)) QueryGradTask task) {               \
    runBlock<QueryGrad, QueryGradPlan, D>(task);                               \
  }                                                                            \
  KERNEL MESHWORK_BOUNDS(rowSumThreads) wgmmaRowSums##D(RowSumsTask task) {    \
    sumRow<D>(task);                                                           \
  }
MESHWORK_WGMMA_KERNELS(64)
MESHWORK_WGMMA_KERNELS(128)

} // namespace meshwork::runtime::cuda
