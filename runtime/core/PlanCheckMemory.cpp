// Buffers in the arena, and that no two live ones share bytes.
#include "runtime/core/PlanCheckInternal.h"
#include <algorithm>
#include <map>

namespace meshwork::runtime {
namespace {

struct Life {
  uint64_t first, last; // inclusive, in instructions
};

/// The life that counts when lists repeat.
///   - What lives from before the microbatches into them is read again by the
///     next one, so it lives to their end.
///   - What is written in a microbatch and read after the last one may be an
///     accumulator, so it must survive from the start of each.
Life effectiveLife(const ProgramCheck &check, const plan::Buffer &buffer) {
  if (buffer.persistent())
    return {0, UINT64_MAX - 1};
  Life life{buffer.first_use(), buffer.last_use()};
  uint64_t begin = check.microbatch().begin, end = check.microbatch().end();
  if (check.plan.microbatches() == 1 || begin == end)
    return life;
  if (life.first < begin && life.last >= begin)
    life.last = std::max(life.last, end - 1);
  else if (life.first < end && life.last >= end)
    life.first = std::min(life.first, begin);
  return life;
}

struct Event {
  uint64_t time;
  bool starts;
  uint32_t buffer;
  bool operator<(const Event &other) const {
    // Ends (at last + 1) come before starts of the same time.
    return time != other.time ? time < other.time : starts < other.starts;
  }
};

absl::Status collision(const ProgramCheck &check, uint32_t a, uint32_t b) {
  const plan::Buffer &first = *check.program.buffers()->Get(a);
  const plan::Buffer &second = *check.program.buffers()->Get(b);
  auto text = [](const plan::Buffer &buffer) {
    std::string life = buffer.persistent()
                           ? std::string("always live")
                           : absl::StrCat("live ", buffer.first_use(), "..",
                                          buffer.last_use());
    return absl::StrCat(quote(buffer.name()), " (bytes ", buffer.offset(),
                        " to ", buffer.offset() + buffer.size_bytes(), ", ",
                        life, ")");
  };
  return bad("buffers ", text(first), " and ", text(second),
             " share bytes while both are live");
}
} // namespace

/// One call works on what the arena holds, or on little.
static absl::Status checkScratch(const plan::Program &program) {
  constexpr uint64_t small = uint64_t{64} << 20;
  uint64_t scratch = program.workspace_bytes_per_thread(), most = 0;
  if (!checkedAdd(program.arena_bytes(), small, most) || scratch <= most)
    return absl::OkStatus();
  return bad("workspace_bytes_per_thread is ", scratch,
             ", expected at most 64 MiB more than the arena of ",
             program.arena_bytes(), " bytes");
}

absl::Status checkBuffers(const ProgramCheck &check) {
  MESHWORK_RETURN_IF_ERROR(checkScratch(check.program));
  uint64_t instructions = check.update().end();
  for (uint32_t i = 0; i < orEmpty(check.program.buffers()).size(); ++i) {
    const plan::Buffer &buffer = *check.program.buffers()->Get(i);
    uint64_t end = 0;
    if (buffer.kind() > plan::BufferKind::MAX)
      return bad("buffer ", quote(buffer.name()), " is of unknown kind ",
                 static_cast<int>(buffer.kind()));
    if (buffer.offset() % 64 != 0)
      return bad("buffer ", quote(buffer.name()), " starts at ",
                 buffer.offset(), ", expected a multiple of 64");
    if (!checkedAdd(buffer.offset(), buffer.size_bytes(), end) ||
        end > check.program.arena_bytes())
      return bad("buffer ", quote(buffer.name()), " of ", buffer.size_bytes(),
                 " bytes at ", buffer.offset(), " leaves the arena of ",
                 check.program.arena_bytes(), " bytes");
    if (!buffer.persistent() && (buffer.first_use() > buffer.last_use() ||
                                 buffer.last_use() >= instructions))
      return bad("buffer ", quote(buffer.name()), " lives from instruction ",
                 buffer.first_use(), " to ", buffer.last_use(), " of ",
                 instructions);
  }
  return absl::OkStatus();
}

// A sweep over time. The live set has no overlaps, so a buffer that starts
// needs comparing only with its neighbours in address order.
absl::Status checkOverlaps(const ProgramCheck &check) {
  const auto &buffers = orEmpty(check.program.buffers());
  std::vector<Event> events;
  events.reserve(2 * size_t{buffers.size()});
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    if (buffers.Get(i)->size_bytes() == 0)
      continue;
    Life life = effectiveLife(check, *buffers.Get(i));
    events.push_back({life.first, true, i});
    events.push_back({life.last + 1, false, i});
  }
  std::sort(events.begin(), events.end());
  std::map<uint64_t, uint32_t> live; // offset -> buffer
  for (const Event &event : events) {
    const plan::Buffer &buffer = *buffers.Get(event.buffer);
    if (!event.starts) {
      live.erase(buffer.offset());
      continue;
    }
    auto next = live.lower_bound(buffer.offset());
    if (next != live.end() &&
        next->first < buffer.offset() + buffer.size_bytes())
      return collision(check, next->second, event.buffer);
    if (next != live.begin()) {
      const plan::Buffer &before = *buffers.Get(std::prev(next)->second);
      if (before.offset() + before.size_bytes() > buffer.offset())
        return collision(check, std::prev(next)->second, event.buffer);
    }
    live.emplace(buffer.offset(), event.buffer);
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime
