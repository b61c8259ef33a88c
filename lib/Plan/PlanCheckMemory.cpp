// Buffers in their arenas, and that no two live ones share bytes.
#include "lib/Plan/PlanCheckInternal.h"
#include "lib/Plan/Spaces.h"
#include <algorithm>
#include <map>

namespace meshwork::plan {
namespace {

struct Event {
  uint64_t time;
  bool starts;
  uint32_t buffer;
  bool operator<(const Event &other) const {
    // Ends come before starts of the same time.
    return time != other.time ? time < other.time : starts < other.starts;
  }
};

/// "backward[3]".
std::string nameOf(const ProgramCheck &check, Lives::Place place) {
  return absl::StrCat(check.sections[place.list].name, "[", place.instruction,
                      "]");
}

absl::Status collision(const ProgramCheck &check, const Lives &lives,
                       uint32_t a, uint32_t b) {
  const Buffer &first = *check.program.buffers()->Get(a);
  const Buffer &second = *check.program.buffers()->Get(b);
  auto text = [&](uint32_t index, const Buffer &buffer) {
    std::string life =
        buffer.persistent() || lives.isAlways(index)
            ? std::string("always live")
            : absl::StrCat("live from ", nameOf(check, lives.firstTouch(index)),
                           " to ", nameOf(check, lives.lastTouch(index)));
    return absl::StrCat(quote(buffer.name()), " (bytes ", buffer.offset(),
                        " to ", buffer.offset() + buffer.size_bytes(),
                        buffer.space() == Space::host ? " on the host, " : ", ",
                        life, ")");
  };
  return bad("buffers ", text(a, first), " and ", text(b, second),
             " share bytes while both are live");
}
} // namespace

/// One call works on what the arena holds, or on little.
static absl::Status checkScratch(const Program &program) {
  constexpr uint64_t small = uint64_t{64} << 20;
  uint64_t scratch = program.workspace_bytes_per_thread(), most = 0;
  if (!checkedAdd(program.arena_bytes(), small, most) || scratch <= most)
    return absl::OkStatus();
  return bad("workspace_bytes_per_thread is ", scratch,
             ", expected at most 64 MiB more than the arena of ",
             program.arena_bytes(), " bytes");
}

/// Places in both arenas are numbers on one line (Spaces.h).
static absl::Status checkArenas(const Program &program) {
  uint64_t both = 0;
  return checkedAdd(program.arena_bytes(), 63, both) &&
                 checkedAdd(both, program.host_bytes(), both)
             ? absl::OkStatus()
             : bad("arenas of ", program.arena_bytes(), " bytes and ",
                   program.host_bytes(),
                   " on the host do not fit 64 bits together");
}

absl::Status checkBuffers(const ProgramCheck &check) {
  MESHWORK_RETURN_IF_ERROR(checkArenas(check.program));
  MESHWORK_RETURN_IF_ERROR(checkScratch(check.program));
  for (uint32_t i = 0; i < orEmpty(check.program.buffers()).size(); ++i) {
    const Buffer &buffer = *check.program.buffers()->Get(i);
    uint64_t end = 0;
    if (buffer.kind() > BufferKind::MAX)
      return bad("buffer ", quote(buffer.name()), " is of unknown kind ",
                 static_cast<int>(buffer.kind()));
    if (buffer.space() > Space::MAX)
      return bad("buffer ", quote(buffer.name()), " lies in unknown memory ",
                 static_cast<int>(buffer.space()));
    uint64_t arena = bytesOf(check.program, buffer.space());
    if (buffer.offset() % 64 != 0)
      return bad("buffer ", quote(buffer.name()), " starts at ",
                 buffer.offset(), ", expected a multiple of 64");
    if (!checkedAdd(buffer.offset(), buffer.size_bytes(), end) || end > arena)
      return bad("buffer ", quote(buffer.name()), " of ", buffer.size_bytes(),
                 " bytes at ", buffer.offset(), " leaves the arena of ", arena,
                 buffer.space() == Space::host ? " bytes on the host"
                                               : " bytes");
    constexpr uint64_t aligned = 64;
    if (buffer.copies() == 0 ||
        (buffer.copies() > 1 &&
         buffer.size_bytes() % (aligned * buffer.copies()) != 0))
      return bad("buffer ", quote(buffer.name()), " of ", buffer.size_bytes(),
                 " bytes has ", buffer.copies(),
                 " copies, expected one or more of a multiple of 64 bytes");
  }
  return absl::OkStatus();
}

namespace {
/// The buffers' lives on the line of lib/Plan/Lives.h.
std::vector<Event> eventsOf(const ProgramCheck &check, const Lives &lives) {
  const auto &buffers = orEmpty(check.program.buffers());
  std::vector<Event> events;
  auto add = [&](uint32_t buffer, uint64_t begin, uint64_t end) {
    events.push_back({begin, true, buffer});
    events.push_back({end, false, buffer});
  };
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (buffers.Get(i)->size_bytes() > 0 && buffers.Get(i)->persistent())
      add(i, 0, UINT64_MAX);
    else if (buffers.Get(i)->size_bytes() > 0)
      for (Span span : lives.spansOf(i))
        add(i, span.begin, span.end + 1);
  return events;
}

/// As many microbatches as are under way at once have one each.
absl::Status checkCopies(const ProgramCheck &check, const Lives &lives) {
  const auto &buffers = orEmpty(check.program.buffers());
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (uint32_t copies = lives.copiesOf(i); copies > buffers.Get(i)->copies())
      return bad("buffer ", quote(buffers.Get(i)->name()), " is used by ",
                 copies, " microbatches at once, but has ",
                 buffers.Get(i)->copies(), " copies");
  for (const Input *input : orEmpty(check.program.inputs())) {
    uint32_t buffer = check.views[input->view()].buffer;
    if (isOfMicrobatch(input->kind()) && lives.isTouched(buffer) &&
        !lives.livesInMicrobatch(buffer))
      return bad("inputs: ", EnumNameInputKind(input->kind()),
                 " is of a microbatch, but lists that run once a step use it");
  }
  return absl::OkStatus();
}
} // namespace

// A sweep over time. The live set has no overlaps, so a buffer that starts
// needs comparing only with its neighbours in address order.
absl::Status checkOverlaps(const ProgramCheck &check, const Lives &lives) {
  MESHWORK_RETURN_IF_ERROR(checkCopies(check, lives));
  const auto &buffers = orEmpty(check.program.buffers());
  std::vector<Event> events = eventsOf(check, lives);
  std::sort(events.begin(), events.end());
  std::map<uint64_t, uint32_t> live; // place -> buffer
  for (const Event &event : events) {
    const Buffer &buffer = *buffers.Get(event.buffer);
    uint64_t place = placeOf(check.program, buffer);
    if (!event.starts) {
      live.erase(place);
      continue;
    }
    auto next = live.lower_bound(place);
    if (next != live.end() && next->first < place + buffer.size_bytes())
      return collision(check, lives, next->second, event.buffer);
    if (next != live.begin() &&
        std::prev(next)->first +
                buffers.Get(std::prev(next)->second)->size_bytes() >
            place)
      return collision(check, lives, std::prev(next)->second, event.buffer);
    live.emplace(place, event.buffer);
  }
  return absl::OkStatus();
}

} // namespace meshwork::plan
