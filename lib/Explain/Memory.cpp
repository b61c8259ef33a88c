#include "lib/Explain/Memory.h"
#include "lib/Explain/Format.h"
#include "lib/Plan/Views.h"
#include <algorithm>

namespace meshwork::explain {
using plan::orEmpty;

namespace {
/// Sums of live bytes over time. `change[t]` is what starts at t less what
/// ended before; unsigned numbers wrap and come back, and no sum of live
/// buffers exceeds the arena.
class Timeline {
public:
  explicit Timeline(uint64_t length) : change(length + 1) {}
  void add(plan::Span life, uint64_t bytes) {
    change[life.begin] += bytes;
    change[life.end + 1] -= bytes;
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

/// Where on the line of lib/Plan/Lives.h a buffer's bytes on the device are its
/// own.
std::vector<plan::Span> spansOf(const plan::Program &program,
                                const plan::Lives &lives, uint32_t buffer) {
  if (program.buffers()->Get(buffer)->space() == plan::Space::host)
    return {};
  if (!program.buffers()->Get(buffer)->persistent())
    return lives.spansOf(buffer);
  return {{0, std::max<uint64_t>(lives.length(), 1) - 1}};
}
} // namespace

MemoryUse measureMemory(const plan::Program &program, const Listing &listing) {
  MemoryUse use;
  use.arenaBytes = program.arena_bytes();
  use.libraryBytes = program.workspace_bytes_per_thread();
  const auto &buffers = orEmpty(program.buffers());
  plan::Lives lives = plan::livesOf(program, listing.table());
  Timeline all(std::max<uint64_t>(lives.length(), 1));
  std::vector<Timeline> kinds(numBufferKinds, all);
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    const plan::Buffer &buffer = *buffers.Get(i);
    for (plan::Span span : spansOf(program, lives, i)) {
      all.add(span, buffer.size_bytes());
      kinds[static_cast<size_t>(buffer.kind())].add(span, buffer.size_bytes());
    }
    if (buffer.persistent() && buffer.space() == plan::Space::device)
      use.persistentBytes += buffer.size_bytes();
  }
  for (size_t kind = 0; kind < numBufferKinds; ++kind)
    use.mostOfKind[kind] = kinds[kind].fullest().second;
  uint64_t fullest = 0;
  std::tie(fullest, use.fullestBytes) = all.fullest();
  if (lives.length() > 0)
    use.fullestAt = listing.numberOf(lives.placeAt(fullest));
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    std::vector<plan::Span> spans = spansOf(program, lives, i);
    if (!buffers.Get(i)->persistent() &&
        std::any_of(spans.begin(), spans.end(), [&](plan::Span span) {
          return span.begin <= fullest && fullest <= span.end;
        }))
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
