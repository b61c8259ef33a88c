// That the ranks of every group meet, on every channel.
#include "absl/container/flat_hash_map.h"
#include "runtime/core/PlanCheckInternal.h"
#include <algorithm>
#include <deque>

namespace meshwork::runtime {
namespace {

uint32_t programOf(const plan::Plan &plan, uint32_t rank) {
  const auto &list = *plan.program_of_rank();
  return list.Get(list.size() == 1 ? 0 : rank);
}

/// A rank's own thread (channel 0) or one of its communication threads.
struct Agent {
  uint32_t rank, channel;
};

/// One rank on its way through one list of its program.
struct Walker {
  const Instructions *list;
  uint32_t next = 0; // instruction of its own thread
  // Of each channel: instructions that were started, and how many are done.
  std::vector<uint32_t> queues[maxChannels + 1];
  uint32_t done[maxChannels + 1] = {};
  bool waits = false; // its own thread, for a channel

  uint32_t at(uint32_t channel) const {
    return channel == 0 ? next : queues[channel][done[channel]];
  }
};

/// Axes as bits, the first rank of the group, the channel.
using Place = std::tuple<uint32_t, uint32_t, uint32_t>;

/// The rank with the coordinates of the agent's, except 0 along `axes`, stands
/// for the group. The bits of the axes tell groups of different axes apart.
Place placeOf(const plan::Plan &plan, Agent agent, const AxisIndices &axes) {
  uint32_t bits = 0;
  for (uint32_t axis : axes)
    bits |= 1u << axis;
  uint32_t stride = 1, first = agent.rank;
  for (uint32_t i = plan.mesh()->size(); i-- > 0;) {
    uint32_t size = plan.mesh()->Get(i)->size();
    if (bits >> i & 1)
      first -= (agent.rank / stride % size) * stride;
    stride *= size;
  }
  return {bits, first, agent.channel};
}

template <typename T>
bool same(const flatbuffers::Vector<T> *a, const flatbuffers::Vector<T> *b) {
  return std::equal(orEmpty(a).begin(), orEmpty(a).end(), orEmpty(b).begin(),
                    orEmpty(b).end());
}

bool sameLayout(const plan::View &a, const plan::View &b) {
  return a.dtype() == b.dtype() && same(a.shape(), b.shape()) &&
         same(a.strides(), b.strides());
}

absl::Status compare(const plan::Program &a, const plan::Collective &x,
                     const plan::Program &b, const plan::Collective &y) {
  if (x.kind() != y.kind() || x.reduction() != y.reduction() ||
      !same(x.axes(), y.axes()) || !same(x.sources(), y.sources()))
    return bad("one is ", plan::EnumNameCollectiveKind(x.kind()),
               ", the other ", plan::EnumNameCollectiveKind(y.kind()),
               ", or their reductions, sources or the order of their axes "
               "differ");
  if (x.last_microbatch() != y.last_microbatch())
    return bad("one is for the last microbatch only");
  if (x.parts()->size() != y.parts()->size())
    return bad("one has ", x.parts()->size(), " parts, the other ",
               y.parts()->size());
  for (uint32_t i = 0; i < x.parts()->size(); ++i) {
    const plan::Transfer &u = *x.parts()->Get(i), &v = *y.parts()->Get(i);
    if (u.dim() != v.dim() || u.to_dim() != v.to_dim() ||
        !sameLayout(*a.views()->Get(u.src()), *b.views()->Get(v.src())) ||
        !sameLayout(*a.views()->Get(u.dst()), *b.views()->Get(v.dst())))
      return bad("part ", i,
                 " has another type, shape, stride or dim in one than in the "
                 "other");
  }
  return absl::OkStatus();
}

/// Walks all ranks through one list, each thread waiting at a collective until
/// its whole group is there. Every order of arrival ends the same way, so one
/// walk proves that no rank waits forever.
class Rehearsal {
public:
  Rehearsal(const plan::Plan &plan, const char *section,
            absl::FunctionRef<const Instructions *(const plan::Program &)> pick,
            uint32_t ranks)
      : plan(plan), section(section), walkers(ranks) {
    for (uint32_t rank = 0; rank < ranks; ++rank)
      walkers[rank].list = pick(*plan.programs()->Get(programOf(plan, rank)));
  }

  absl::Status run() {
    for (uint32_t rank = 0; rank < walkers.size(); ++rank)
      ready.push_back({rank, 0});
    while (!ready.empty()) {
      Agent agent = ready.front();
      ready.pop_front();
      MESHWORK_RETURN_IF_ERROR(agent.channel == 0 ? walk(agent.rank)
                                                  : arrive(agent));
    }
    if (meetings.empty())
      return absl::OkStatus();
    Agent agent = meetings.begin()->second.front();
    return bad("rank ", agent.rank, " would wait forever at ", where(agent),
               ": the ranks of its group do not all come there");
  }

private:
  const plan::Instruction &instruction(Agent agent) const {
    const Walker &walker = walkers[agent.rank];
    return *walker.list->Get(walker.at(agent.channel));
  }
  std::string where(Agent agent) const {
    return absl::StrCat(section, "[", walkers[agent.rank].at(agent.channel),
                        "] ", quote(instruction(agent).name()));
  }

  /// A rank's own thread, to where it must wait.
  absl::Status walk(uint32_t rank) {
    Walker &walker = walkers[rank];
    for (; walker.next < walker.list->size(); ++walker.next) {
      const plan::Instruction &at = *walker.list->Get(walker.next);
      if (const plan::Wait *wait = at.op_as_Wait()) {
        walker.waits = walker.done[wait->channel()] < wait->count();
        if (walker.waits)
          return absl::OkStatus();
      }
      const plan::Collective *op = at.op_as_Collective();
      if (!op)
        continue;
      if (op->channel() == 0)
        return arrive({rank, 0});
      std::vector<uint32_t> &queue = walker.queues[op->channel()];
      queue.push_back(walker.next);
      if (queue.size() == walker.done[op->channel()] + 1)
        MESHWORK_RETURN_IF_ERROR(arrive({rank, op->channel()}));
    }
    return absl::OkStatus();
  }

  absl::Status arrive(Agent agent) {
    const plan::Collective &op = *instruction(agent).op_as_Collective();
    Place place = placeOf(plan, agent, *op.axes());
    std::vector<Agent> &present = meetings[place];
    Agent other = present.empty() ? agent : present.front();
    absl::Status same =
        compare(*plan.programs()->Get(programOf(plan, other.rank)),
                *instruction(other).op_as_Collective(),
                *plan.programs()->Get(programOf(plan, agent.rank)), op);
    if (!same.ok())
      return bad("collectives of ranks ", other.rank, " (", where(other),
                 ") and ", agent.rank, " (", where(agent),
                 ") do not match: ", same.message());
    present.push_back(agent);
    if (present.size() == groupSize(plan, op.axes()))
      release(place);
    return absl::OkStatus();
  }

  void release(Place place) {
    std::vector<Agent> members = std::move(meetings[place]);
    meetings.erase(place);
    for (Agent agent : members) {
      Walker &walker = walkers[agent.rank];
      if (agent.channel == 0) {
        ++walker.next;
        ready.push_back(agent);
        continue;
      }
      if (++walker.done[agent.channel] < walker.queues[agent.channel].size())
        ready.push_back(agent);
      if (std::exchange(walker.waits, false))
        ready.push_back({agent.rank, 0});
    }
  }

  const plan::Plan &plan;
  const char *section;
  std::vector<Walker> walkers;
  std::deque<Agent> ready;
  absl::flat_hash_map<Place, std::vector<Agent>> meetings;
};
} // namespace

absl::Status checkCollectiveOrder(const plan::Plan &plan) {
  const auto &list = *plan.program_of_rank();
  bool allSame = std::all_of(list.begin(), list.end(),
                             [&](uint32_t p) { return p == list.Get(0); });
  if (allSame) // The same program meets itself.
    return absl::OkStatus();
  uint32_t ranks = list.size();
  using Pick = const Instructions *(*)(const plan::Program &);
  const std::pair<const char *, Pick> picks[] = {
      {"once", [](const plan::Program &p) { return &orEmpty(p.once()); }},
      {"step", [](const plan::Program &p) { return &orEmpty(p.step()); }},
      {"microbatch",
       [](const plan::Program &p) { return &orEmpty(p.microbatch()); }},
      {"update", [](const plan::Program &p) { return &orEmpty(p.update()); }}};
  for (const auto &[name, pick] : picks)
    MESHWORK_RETURN_IF_ERROR(Rehearsal(plan, name, pick, ranks).run());
  return absl::OkStatus();
}

} // namespace meshwork::runtime
