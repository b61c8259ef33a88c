#include "lib/Explain/Memory.h"
#include "lib/Explain/Format.h"
#include "lib/Plan/Views.h"
#include <algorithm>
#include <numeric>

namespace meshwork::explain {
using plan::orEmpty;

namespace {
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

uint64_t sumOf(const BytesByKind &bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
}

std::vector<BytesByKind> memoryOverStep(const plan::Program &program,
                                        const plan::Lives &lives) {
  // What begins at a time less what ended before it, then the sums of these.
  // Unsigned numbers wrap and come back, and no sum of live buffers exceeds
  // the arena.
  std::vector<BytesByKind> line(std::max<uint64_t>(lives.length(), 1) + 1);
  const auto &buffers = orEmpty(program.buffers());
  for (uint32_t i = 0; i < buffers.size(); ++i)
    for (plan::Span span : spansOf(program, lives, i)) {
      auto kind = static_cast<size_t>(buffers.Get(i)->kind());
      line[span.begin][kind] += buffers.Get(i)->size_bytes();
      line[span.end + 1][kind] -= buffers.Get(i)->size_bytes();
    }
  line.pop_back();
  for (size_t time = 1; time < line.size(); ++time)
    for (size_t kind = 0; kind < numBufferKinds; ++kind)
      line[time][kind] += line[time - 1][kind];
  return line;
}

static uint64_t persistentBytes(const plan::Program &program) {
  uint64_t bytes = 0;
  for (const plan::Buffer *buffer : orEmpty(program.buffers()))
    if (buffer->persistent() && buffer->space() == plan::Space::device)
      bytes += buffer->size_bytes();
  return bytes;
}

static void addPeaks(MemoryUse &use, const std::vector<BytesByKind> &line) {
  for (uint64_t time = 0; time < line.size(); ++time) {
    for (size_t kind = 0; kind < numBufferKinds; ++kind)
      use.mostOfKind[kind] = std::max(use.mostOfKind[kind], line[time][kind]);
    if (uint64_t sum = sumOf(line[time]); sum > use.fullestBytes) {
      use.fullestBytes = sum;
      use.fullestTime = time;
    }
  }
}

MemoryUse measureMemory(const plan::Program &program, const Listing &listing) {
  MemoryUse use;
  use.arenaBytes = program.arena_bytes();
  use.libraryBytes = program.workspace_bytes_per_thread();
  use.persistentBytes = persistentBytes(program);
  const auto &buffers = orEmpty(program.buffers());
  plan::Lives lives = plan::livesOf(program, listing.table());
  addPeaks(use, memoryOverStep(program, lives));
  if (lives.length() > 0)
    use.fullestAt = listing.numberOf(lives.placeAt(use.fullestTime));
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    std::vector<plan::Span> spans = spansOf(program, lives, i);
    if (!buffers.Get(i)->persistent() &&
        std::any_of(spans.begin(), spans.end(), [&](plan::Span span) {
          return span.begin <= use.fullestTime && use.fullestTime <= span.end;
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
