// That the ranks of every group meet, on every channel.
#include "absl/container/flat_hash_map.h"
#include "lib/Plan/Programs.h"
#include "runtime/core/PlanCheckInternal.h"
#include <algorithm>
#include <deque>
#include <map>

namespace meshwork::runtime {
namespace {

/// The ranks of which one of each kind stands for all: those with coordinate 0
/// along every axis on which programs do not depend. Ranks that differ along
/// such an axis alone run one program and come to each collective together, so
/// a group is there when its members among these are.
class Representatives {
public:
  explicit Representatives(const plan::Plan &plan) : plan(plan) {
    for (uint32_t axis : orEmpty(plan.program_axes()))
      count *= plan.mesh()->Get(axis)->size();
  }
  uint32_t size() const { return static_cast<uint32_t>(count); }
  /// Of the one with a number from 0, which is row-major along program_axes.
  const plan::Program &program(uint32_t number) const {
    return *plan.programs()->Get(plan::programNumber(plan, number));
  }
  /// The rank in the whole mesh.
  uint64_t rank(uint32_t number) const {
    uint64_t stride = 1, rank = 0;
    for (uint32_t i = plan.mesh()->size(); i-- > 0;) {
      rank += coordinate(number, i) * stride;
      stride *= plan.mesh()->Get(i)->size();
    }
    return rank;
  }
  /// The first member of the group along `axes`, by its number.
  uint32_t firstOf(uint32_t number, uint32_t axes) const {
    uint64_t stride = 1, first = number;
    for (uint32_t i = orEmpty(plan.program_axes()).size(); i-- > 0;) {
      uint32_t axis = plan.program_axes()->Get(i),
               extent = plan.mesh()->Get(axis)->size();
      if (axes >> axis & 1)
        first -= (number / stride % extent) * stride;
      stride *= extent;
    }
    return static_cast<uint32_t>(first);
  }
  uint64_t membersOf(uint32_t axes) const {
    uint64_t members = 1;
    for (uint32_t axis : orEmpty(plan.program_axes()))
      members *= axes >> axis & 1 ? plan.mesh()->Get(axis)->size() : 1;
    return members;
  }

private:
  uint64_t coordinate(uint64_t number, uint32_t of) const {
    for (uint32_t i = orEmpty(plan.program_axes()).size(); i-- > 0;) {
      uint32_t axis = plan.program_axes()->Get(i),
               extent = plan.mesh()->Get(axis)->size();
      if (axis == of)
        return number % extent;
      number /= extent;
    }
    return 0;
  }

  const plan::Plan &plan;
  uint64_t count = 1;
};

/// A rank's own thread (channel 0) or one of its communication threads.
struct Agent {
  uint32_t rank, channel;
};

/// One rank on its way through one list of its program.
struct Walker {
  const Instructions *list;
  std::vector<plan::Turn> turns;
  uint32_t next = 0; // turn of its own thread
  // Of each channel: turns that were started, and how many are done.
  std::vector<uint32_t> queues[maxChannels + 1];
  uint32_t done[maxChannels + 1] = {};
  bool waits = false; // its own thread, for a channel

  uint32_t at(uint32_t channel) const {
    return turns[channel == 0 ? next : queues[channel][done[channel]]]
        .instruction;
  }
};

/// Axes as bits, the first member of the group, the channel. The bits tell
/// groups of different axes apart.
using Place = std::tuple<uint32_t, uint32_t, uint32_t>;

uint32_t bitsOf(const AxisIndices &axes) {
  uint32_t bits = 0;
  for (uint32_t axis : axes)
    bits |= 1u << axis;
  return bits;
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
  if (x.last_only() != y.last_only())
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

/// Walks one rank of each kind through one list, each thread waiting at a
/// collective until its whole group is there. Every order of arrival ends the
/// same way, so one walk proves that no rank waits forever.
class Rehearsal {
public:
  Rehearsal(const Representatives &ranks, const plan::ListShape &list)
      : ranks(ranks), section(plan::nameOf(list)), walkers(ranks.size()) {
    for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
      const Instructions &all = *find(ranks.program(rank), list);
      walkers[rank].list = &all;
      walkers[rank].turns =
          plan::Repeats(plan::repeatsOf(&all), all.size()).turns();
    }
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
    return bad("rank ", ranks.rank(agent.rank), " would wait forever at ",
               where(agent), ": the ranks of its group do not all come there");
  }

private:
  /// The list of this kind and stage; an empty one where there is none.
  static const Instructions *find(const plan::Program &program,
                                  const plan::ListShape &list) {
    for (const plan::List *one : orEmpty(program.lists()))
      if (one->kind() == list.kind && one->stage() == list.stage)
        return &orEmpty(one->instructions());
    static const Instructions *const none = nullptr;
    return &orEmpty(none);
  }

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
    for (; walker.next < walker.turns.size(); ++walker.next) {
      const plan::Instruction &at = *walker.list->Get(walker.at(0));
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
    uint32_t axes = bitsOf(*op.axes());
    Place place{axes, ranks.firstOf(agent.rank, axes), agent.channel};
    std::vector<Agent> &present = meetings[place];
    Agent other = present.empty() ? agent : present.front();
    absl::Status same = compare(ranks.program(other.rank),
                                *instruction(other).op_as_Collective(),
                                ranks.program(agent.rank), op);
    if (!same.ok())
      return bad("collectives of ranks ", ranks.rank(other.rank), " (",
                 where(other), ") and ", ranks.rank(agent.rank), " (",
                 where(agent), ") do not match: ", same.message());
    present.push_back(agent);
    if (present.size() == ranks.membersOf(axes))
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

  const Representatives &ranks;
  std::string section;
  std::vector<Walker> walkers;
  std::deque<Agent> ready;
  absl::flat_hash_map<Place, std::vector<Agent>> meetings;
};
} // namespace

/// Ranks run the same actions, so they come to each list together.
static absl::Status checkSameActions(const plan::Plan &plan) {
  auto textOf = [](const plan::Program &program, uint32_t i) {
    const plan::Action &at = plan::actionsOf(program)[i];
    return plan::textOf(plan::listsOf(program)[at.list()], at.microbatch());
  };
  const plan::Program &first = *plan.programs()->Get(0);
  for (uint32_t p = 1; p < plan.programs()->size(); ++p) {
    const plan::Program &other = *plan.programs()->Get(p);
    std::span<const plan::Action> a = plan::actionsOf(first),
                                  b = plan::actionsOf(other);
    if (a.size() != b.size())
      return bad("program 0 has ", a.size(), " actions, program ", p, " ",
                 b.size(), ", expected the same in both");
    std::vector<plan::ListShape> ofA = plan::listsOf(first),
                                 ofB = plan::listsOf(other);
    for (uint32_t i = 0; i < a.size(); ++i)
      if (ofA[a[i].list()].kind != ofB[b[i].list()].kind ||
          a[i].microbatch() != b[i].microbatch())
        return bad("action ", i, " is ", textOf(first, i), " of program 0 and ",
                   textOf(other, i), " of program ", p,
                   ", expected the same in both");
  }
  return absl::OkStatus();
}

absl::Status checkCollectiveOrder(const plan::Plan &plan, uint64_t &rehearsed) {
  MESHWORK_RETURN_IF_ERROR(checkSameActions(plan));
  const auto &list = orEmpty(plan.program_numbers());
  bool allSame = std::all_of(list.begin(), list.end(),
                             [&](uint32_t p) { return p == list.Get(0); });
  if (allSame) // The same program meets itself.
    return absl::OkStatus();
  Representatives ranks(plan);
  rehearsed += ranks.size();
  // By kind, so that each is rehearsed once, whichever program has it.
  std::map<std::pair<plan::ListKind, uint32_t>, plan::ListShape> kinds;
  for (uint32_t rank = 0; rank < ranks.size(); ++rank)
    for (const plan::ListShape &one : plan::listsOf(ranks.program(rank)))
      kinds.try_emplace({one.kind, one.stage}, one);
  for (const auto &[key, one] : kinds)
    MESHWORK_RETURN_IF_ERROR(Rehearsal(ranks, one).run());
  return absl::OkStatus();
}

} // namespace meshwork::runtime
