// Walks one rank of each kind through its actions, each thread waiting where it
// must. Every order of arrival ends the same way, so one walk proves that no
// rank waits forever. A transfer is judged as a meeting: it ends when both
// sides have started it, and not before. Plans for GPUs must come to their end
// even if a rank's transfers run one after another, as in one stream.
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "lib/Plan/PlanCheckInternal.h"
#include "lib/Plan/PlanOrder.h"
#include "lib/Plan/SameViews.h"
#include "lib/Plan/WaitCircle.h"
#include <algorithm>
#include <deque>

namespace meshwork::plan {
namespace {

/// A rank's own thread (channel 0) or one of its channels.
struct Agent {
  uint32_t rank, channel;
};

/// Why a rank's own thread does not go on.
enum class Stop : uint8_t { none, transfer, collective, channel };

/// One rank on its way through its actions.
struct Walker {
  const ProgramOrder *order;
  uint32_t position = 0; // in order->actions
  bool isBegun = false;  // this action: nothing it awaits is left
  uint32_t next = 0;     // event of its own thread
  // Of each channel in this action: events that were started, and how many are
  // done.
  std::vector<uint32_t> queues[maxChannels + 1];
  uint32_t done[maxChannels + 1] = {};
  Stop stop = Stop::none;
  uint32_t awaits = 0;        // the action, of Stop::transfer
  uint32_t channel = 0;       // of Stop::channel
  std::vector<bool> finished; // transfers, by action
  // Those that have not ended, where they end in order: the first has started.
  std::deque<uint32_t> posted;

  bool hasEnded() const { return position == order->actions.size(); }
  uint32_t action() const { return order->actions[position]; }
  uint32_t list() const { return order->all()[action()].list(); }
  const std::vector<uint32_t> &events() const { return order->events[list()]; }
  uint32_t at(uint32_t channel) const {
    return events()[channel == 0 ? next : queues[channel][done[channel]]];
  }
  const Instruction &instruction(uint32_t index) const {
    return *listOf(order->program, list()).Get(index);
  }
  /// All that was started has ended (checkAsync), and counts begin anew.
  void restartChannels() {
    for (auto &queue : queues)
      queue.clear();
    std::fill(std::begin(done), std::end(done), 0);
  }
  /// It meets nobody: the rank does it alone, or it moves something in the last
  /// action of its list only, not in this one.
  bool isAlone(const Instruction &at) const {
    const Collective *op = at.op_as_Collective();
    return !op || (op->last_only() && !order->oncePerList &&
                   !order->table.isLast(action()));
  }
};

/// Axes as bits, the first member of the group, the channel. The bits tell
/// groups of different axes apart.
using Place = std::tuple<uint32_t, uint32_t, uint32_t>;
/// Sender, receiver, the sender's stage, whether of gradients.
using Lane = std::tuple<uint32_t, uint32_t, uint64_t, bool>;

absl::Status compare(const Program &a, const Collective &x, const Program &b,
                     const Collective &y) {
  if (x.kind() != y.kind() || x.reduction() != y.reduction() ||
      !sameNumbers(x.axes(), y.axes()) ||
      !sameNumbers(x.sources(), y.sources()))
    return bad("one is ", EnumNameCollectiveKind(x.kind()), ", the other ",
               EnumNameCollectiveKind(y.kind()),
               ", or their reductions, sources or the order of their axes "
               "differ");
  if (x.last_only() != y.last_only())
    return bad("one is for the last microbatch only");
  if (x.any_order() != y.any_order())
    return bad("only one may add up in any order");
  if (x.parts()->size() != y.parts()->size())
    return bad("one has ", x.parts()->size(), " parts, the other ",
               y.parts()->size());
  for (uint32_t i = 0; i < x.parts()->size(); ++i) {
    const Transfer &u = *x.parts()->Get(i), &v = *y.parts()->Get(i);
    if (u.dim() != v.dim() || u.to_dim() != v.to_dim() ||
        !sameLayout(*a.views()->Get(u.src()), *b.views()->Get(v.src())) ||
        !sameLayout(*a.views()->Get(u.dst()), *b.views()->Get(v.dst())))
      return bad("part ", i,
                 " has another type, shape, stride or dim in one than in the "
                 "other");
  }
  return absl::OkStatus();
}

class Rehearsal {
public:
  explicit Rehearsal(const PlanOrder &order)
      : ranks(order.ranks), inOrder(order.plan.device() == Device::cuda),
        walkers(ranks.size()) {
    for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
      walkers[rank].order = &order.of(rank);
      walkers[rank].finished.resize(order.of(rank).all().size());
    }
  }

  absl::Status run() {
    for (uint32_t rank = 0; rank < walkers.size(); ++rank)
      ready.push_back({rank, 0});
    while (!ready.empty()) {
      Agent agent = ready.front();
      ready.pop_front();
      MESHWORK_RETURN_IF_ERROR(agent.channel == 0
                                   ? walk(agent.rank)
                                   : serve(agent.rank, agent.channel));
    }
    std::vector<Blocked> blocked;
    for (uint32_t rank = 0; rank < walkers.size(); ++rank)
      if (!walkers[rank].hasEnded())
        blocked.push_back(blockedAt(rank));
    return blocked.empty() ? absl::OkStatus()
                           : bad(describe(blocked, [&](uint32_t rank) {
                               return ranks.rank(rank);
                             }));
  }

private:
  /// A rank's own thread, to where it must wait.
  absl::Status walk(uint32_t rank) {
    Walker &walker = walkers[rank];
    walker.stop = Stop::none;
    while (!walker.hasEnded()) {
      if (!walker.isBegun && !begin(rank))
        return absl::OkStatus();
      for (; walker.next < walker.events().size(); ++walker.next) {
        MESHWORK_RETURN_IF_ERROR(pass(rank));
        if (walker.stop != Stop::none)
          return absl::OkStatus();
      }
      ++walker.position;
      walker.isBegun = false;
    }
    return absl::OkStatus();
  }

  /// False when the action has to wait for a transfer.
  bool begin(uint32_t rank) {
    Walker &walker = walkers[rank];
    for (uint32_t other : walker.order->transfers.awaitedBy(walker.action()))
      if (!walker.finished[other]) {
        walker.stop = Stop::transfer;
        walker.awaits = other;
        return false;
      }
    walker.isBegun = true;
    walker.next = 0;
    walker.restartChannels();
    ListKind kind = walker.order->listOf(walker.action()).kind;
    if (plan::sends(kind) || plan::receives(kind))
      post(rank, walker.action());
    return true;
  }

  /// Starts a transfer, or puts it behind those of its rank.
  void post(uint32_t rank, uint32_t action) {
    std::deque<uint32_t> &posted = walkers[rank].posted;
    if (inOrder)
      posted.push_back(action);
    if (!inOrder || posted.size() == 1)
      starting.push_back({rank, action});
    for (; !starting.empty(); starting.pop_front())
      start(starting.front().first, starting.front().second);
  }

  /// The other side may have.
  void start(uint32_t rank, uint32_t action) {
    const ProgramOrder &order = *walkers[rank].order;
    const ListShape &list = order.listOf(action);
    bool sends = plan::sends(list.kind);
    uint32_t peer = peerOf(rank, action);
    bool isGradient =
        list.kind == ListKind::send_grad || list.kind == ListKind::recv_grad;
    uint64_t stage = sends ? list.stage : counterpartOf(list).stage;
    auto &sides = lanes[sends ? Lane(rank, peer, stage, isGradient)
                              : Lane(peer, rank, stage, isGradient)];
    std::deque<uint32_t> &others = sends ? sides.second : sides.first;
    if (others.empty())
      return (sends ? sides.first : sides.second).push_back(action);
    finish(rank, action);
    finish(peer, others.front());
    others.pop_front();
  }

  void finish(uint32_t rank, uint32_t action) {
    Walker &walker = walkers[rank];
    walker.finished[action] = true;
    if (walker.stop == Stop::transfer && walker.awaits == action)
      ready.push_back({rank, 0});
    if (!inOrder)
      return;
    walker.posted.pop_front();
    if (!walker.posted.empty())
      starting.push_back({rank, walker.posted.front()});
  }

  uint32_t peerOf(uint32_t rank, uint32_t action) const {
    const ProgramOrder &order = *walkers[rank].order;
    TransferOf op = transferOf(order.program, order.all()[action].list());
    return ranks.at(rank, op.axis, op.peer);
  }

  /// One event of a rank's own thread; `stop` says whether it waits there.
  absl::Status pass(uint32_t rank) {
    Walker &walker = walkers[rank];
    const Instruction &at = walker.instruction(walker.at(0));
    if (at.op_as_Repeat())
      walker.restartChannels();
    if (const Wait *wait = at.op_as_Wait()) {
      if (walker.done[wait->channel()] < wait->count()) {
        walker.stop = Stop::channel;
        walker.channel = wait->channel();
      }
      return absl::OkStatus();
    }
    if (at.channel() == 0) {
      if (walker.isAlone(at))
        return absl::OkStatus();
      walker.stop = Stop::collective;
      return arrive({rank, 0});
    }
    std::vector<uint32_t> &queue = walker.queues[at.channel()];
    queue.push_back(walker.next);
    return queue.size() == walker.done[at.channel()] + 1
               ? serve(rank, at.channel())
               : absl::OkStatus();
  }

  /// A channel, to where it must wait.
  absl::Status serve(uint32_t rank, uint32_t channel) {
    Walker &walker = walkers[rank];
    while (walker.done[channel] < walker.queues[channel].size()) {
      const Instruction &at = walker.instruction(walker.at(channel));
      if (!walker.isAlone(at))
        return arrive({rank, channel});
      ++walker.done[channel];
    }
    return absl::OkStatus();
  }

  Place placeOf(Agent agent) const {
    const Walker &walker = walkers[agent.rank];
    uint32_t axes = 0;
    for (uint32_t axis : *walker.instruction(walker.at(agent.channel))
                              .op_as_Collective()
                              ->axes())
      axes |= 1u << axis;
    return {axes, ranks.firstOf(agent.rank, axes), agent.channel};
  }

  absl::Status arrive(Agent agent) {
    Place place = placeOf(agent);
    std::vector<Agent> &present = meetings[place];
    if (!present.empty())
      MESHWORK_RETURN_IF_ERROR(match(present.front(), agent));
    present.push_back(agent);
    if (present.size() == ranks.membersOf(std::get<0>(place)))
      release(place);
    return absl::OkStatus();
  }

  absl::Status match(Agent one, Agent other) {
    auto collective = [&](Agent agent) {
      const Walker &walker = walkers[agent.rank];
      return walker.instruction(walker.at(agent.channel)).op_as_Collective();
    };
    const Collective *x = collective(one), *y = collective(other);
    if (x == y || !matched.insert({x, y}).second)
      return absl::OkStatus();
    absl::Status same = compare(walkers[one.rank].order->program, *x,
                                walkers[other.rank].order->program, *y);
    return same.ok() ? same
                     : bad("collectives of ranks ", ranks.rank(one.rank), " (",
                           where(one), ") and ", ranks.rank(other.rank), " (",
                           where(other), ") do not match: ", same.message());
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
      if (walker.stop == Stop::channel && walker.channel == agent.channel) {
        walker.stop = Stop::none;
        ready.push_back({agent.rank, 0});
      }
    }
  }

  /// `update[0] "loss"`, `backward[3] "x" in microbatch 2`.
  std::string where(Agent agent) const {
    const Walker &walker = walkers[agent.rank];
    uint32_t index = walker.at(agent.channel);
    const Action &action = walker.order->all()[walker.action()];
    const ListShape &list = walker.order->table.lists()[action.list()];
    bool isOfOne = isOfMicrobatch(list.kind) && !walker.order->oncePerList;
    return absl::StrCat(
        nameOf(list), "[", index, "] ", quote(walker.instruction(index).name()),
        isOfOne ? absl::StrCat(" in microbatch ", action.microbatch())
                : std::string());
  }

  Blocked blockedByTransfer(uint32_t rank) const {
    const Walker &walker = walkers[rank];
    const ProgramOrder &order = *walker.order;
    uint32_t first = inOrder ? walker.posted.front() : walker.awaits;
    return {rank,
            absl::StrCat("before ", order.textOf(walker.action()), " (action ",
                         walker.action(), ") for ", order.textOf(walker.awaits),
                         first == walker.awaits
                             ? ""
                             : absl::StrCat(", which a GPU moves after ",
                                            order.textOf(first))),
            {peerOf(rank, first)}};
  }

  Blocked blockedAt(uint32_t rank) const {
    const Walker &walker = walkers[rank];
    if (walker.stop == Stop::transfer)
      return blockedByTransfer(rank);
    Agent agent{rank, walker.stop == Stop::channel ? walker.channel : 0};
    Blocked blocked{rank, absl::StrCat("at ", where(agent)), {}};
    auto [axes, first, channel] = placeOf(agent);
    auto present = meetings.find(placeOf(agent));
    for (uint32_t other = 0; other < ranks.size(); ++other)
      if (ranks.firstOf(other, axes) == first &&
          (present == meetings.end() ||
           std::none_of(present->second.begin(), present->second.end(),
                        [&](Agent one) { return one.rank == other; })))
        blocked.waitsFor.push_back(other);
    return blocked;
  }

  const Representatives &ranks;
  /// Of a rank on a GPU, a transfer starts when the one before it has ended.
  const bool inOrder;
  std::vector<Walker> walkers;
  std::deque<std::pair<uint32_t, uint32_t>> starting; // rank, action
  std::deque<Agent> ready;
  absl::flat_hash_map<Place, std::vector<Agent>> meetings;
  // Actions that wait for the other side: of the sender, of the receiver.
  absl::flat_hash_map<Lane,
                      std::pair<std::deque<uint32_t>, std::deque<uint32_t>>>
      lanes;
  absl::flat_hash_set<std::pair<const Collective *, const Collective *>>
      matched;
};
} // namespace

absl::Status rehearse(const PlanOrder &order) { return Rehearsal(order).run(); }

} // namespace meshwork::plan
