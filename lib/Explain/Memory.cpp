#include "lib/Explain/Memory.h"
#include "lib/Explain/Format.h"
#include "runtime/core/Views.h"
#include <algorithm>

namespace meshwork::explain {
using runtime::orEmpty;

Life lifeOf(const Listing &listing, const plan::Plan &plan,
            const plan::Buffer &buffer) {
  uint64_t end = std::max<uint64_t>(listing.size(), 1) - 1;
  if (buffer.persistent())
    return {0, end};
  Life life{buffer.first_use(), buffer.last_use()};
  const Phase &repeated = listing.phases()[2];
  if (plan.microbatches() == 1 || repeated.begin == repeated.end)
    return life;
  // The same rule as the check of a plan: what a later microbatch reads again,
  // or adds to, must not be overwritten by an earlier one.
  if (life.first < repeated.begin && life.last >= repeated.begin)
    life.last = std::max(life.last, repeated.end - 1);
  else if (life.first < repeated.end && life.last >= repeated.end)
    life.first = std::min(life.first, repeated.begin);
  return life;
}

namespace {
/// Sums of live bytes over time. `change[t]` is what starts at t less what
/// ended before; unsigned numbers wrap and come back, and no sum of live
/// buffers exceeds the arena.
class Timeline {
public:
  explicit Timeline(uint64_t length) : change(length + 1) {}
  void add(Life life, uint64_t bytes) {
    change[life.first] += bytes;
    change[life.last + 1] -= bytes;
  }
  /// The first time with the largest sum, and that sum.
  std::pair<uint64_t, uint64_t> fullest() const {
    uint64_t sum = 0, most = 0, at = 0;
    for (uint64_t t = 0; t + 1 < change.size(); ++t) {
      sum += change[t];
      if (sum > most) {
        most = sum;
        at = t;
      }
    }
    return {at, most};
  }

private:
  std::vector<uint64_t> change;
};
} // namespace

MemoryUse measureMemory(const plan::Plan &plan, const plan::Program &program,
                        const Listing &listing) {
  MemoryUse use;
  use.arenaBytes = program.arena_bytes();
  use.libraryBytes = program.workspace_bytes_per_thread();
  const auto &buffers = orEmpty(program.buffers());
  uint64_t length = std::max<uint64_t>(listing.size(), 1);
  Timeline all(length);
  std::vector<Timeline> kinds(numBufferKinds, all);
  for (const plan::Buffer *buffer : buffers) {
    Life life = lifeOf(listing, plan, *buffer);
    all.add(life, buffer->size_bytes());
    kinds[static_cast<size_t>(buffer->kind())].add(life, buffer->size_bytes());
    if (buffer->persistent())
      use.persistentBytes += buffer->size_bytes();
  }
  for (size_t kind = 0; kind < numBufferKinds; ++kind)
    use.mostOfKind[kind] = kinds[kind].fullest().second;
  std::tie(use.fullestAt, use.fullestBytes) = all.fullest();
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    Life life = lifeOf(listing, plan, *buffers.Get(i));
    if (!buffers.Get(i)->persistent() && life.first <= use.fullestAt &&
        use.fullestAt <= life.last)
      use.liveAtFullest.push_back(i);
  }
  std::sort(use.liveAtFullest.begin(), use.liveAtFullest.end(),
            [&](uint32_t a, uint32_t b) {
              uint64_t bytesOfA = buffers.Get(a)->size_bytes(),
                       bytesOfB = buffers.Get(b)->size_bytes();
              return bytesOfA != bytesOfB ? bytesOfA > bytesOfB : a < b;
            });
  return use;
}

} // namespace meshwork::explain
