#include "runtime/device/cuda/PeerTransport.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/comm/Moves.h"
#include "runtime/device/cuda/PeerTransfer.h"
#include <chrono>

namespace meshwork::runtime::cuda {
namespace {
using Kind = plan::CollectiveKind;

int64_t nowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

DevicePtr addressOf(const Strided &tensor) {
  return reinterpret_cast<DevicePtr>(tensor.data);
}
} // namespace

struct PeerTransport::Group {
  Group(const Driver &driver, Rendezvous &rendezvous)
      : driver(driver), rendezvous(rendezvous), brought(rendezvous.size()),
        ready(rendezvous.size()), done(rendezvous.size()) {}
  ~Group() {
    for (std::vector<Event> *events : {&ready, &done})
      for (Event event : *events)
        if (event)
          (void)driver.eventDestroy(event);
  }
  absl::Status makeEvents() {
    for (std::vector<Event> *events : {&ready, &done})
      for (Event &event : *events)
        MESHWORK_RETURN_IF_ERROR(
            driver.check(driver.eventCreate(&event, eventDisableTiming),
                         "making an event of a collective"));
    return absl::OkStatus();
  }

  const Driver &driver;
  Rendezvous &rendezvous;
  // Written by each member before a meeting, read by all between two.
  std::vector<const CollectiveRequest *> brought;
  // Recorded by each member in its stream before the first and the second
  // meeting, waited for by all others after it. A member records one anew only
  // when all have come to the next meeting, so have waited for it.
  std::vector<Event> ready, done;
};

namespace {
class PeerCollective : public DeviceCollective {
public:
  PeerCollective(PeerTransport::Group &group, uint32_t index,
                 CollectiveRequest mine)
      : group(group), index(index), ranks(group.rendezvous.size()),
        request(std::move(mine)), what(request.describe()),
        moves(movesOf(request, index, ranks)) {}

  absl::Status allocate(std::shared_ptr<BoxKernels> kernels) {
    // Where peers have their tensors does not change the size.
    std::vector<const CollectiveRequest *> like(ranks, &request);
    MESHWORK_ASSIGN_OR_RETURN(
        boxes, BoxMoves::create(std::move(kernels), tableFor(like).bytes()));
    return absl::OkStatus();
  }

  bool canBeCaptured() const override { return false; }

  absl::Status enqueue(Stream stream, CommTimes &times) override {
    group.brought[index] = &request;
    MESHWORK_RETURN_IF_ERROR(meet(group.ready, stream, times));
    absl::Status same = known.empty() ? checkSame() : checkKnown();
    if (!same.ok()) {
      // Every rank finds a difference; none may go while others look.
      MESHWORK_RETURN_IF_ERROR(meet(group.done, stream, times));
      return same;
    }
    if (known.empty()) {
      known = group.brought;
      MESHWORK_RETURN_IF_ERROR(boxes->set(tableFor(known), stream));
    }
    MESHWORK_RETURN_IF_ERROR(boxes->enqueue(stream));
    return meet(group.done, stream, times);
  }

private:
  /// Holds `stream` until the others' streams have come to where this one is.
  absl::Status meet(std::vector<Event> &events, Stream stream,
                    CommTimes &times) {
    if (ranks == 1)
      return absl::OkStatus();
    const Driver &driver = group.driver;
    MESHWORK_RETURN_IF_ERROR(
        driver.check(driver.eventRecord(events[index], stream),
                     "recording an event of a collective"));
    int64_t start = nowNs();
    MESHWORK_RETURN_IF_ERROR(group.rendezvous.arriveAndWait(index, what));
    times.waitNs += nowNs() - start;
    for (uint32_t i = 0; i < ranks; ++i)
      if (i != index)
        MESHWORK_RETURN_IF_ERROR(
            driver.check(driver.streamWaitEvent(stream, events[i], 0),
                         "waiting for a peer's event"));
    return absl::OkStatus();
  }

  absl::Status differs(uint32_t member) const {
    return absl::InternalError(absl::StrCat(
        what, " meets \"", group.brought[member]->name, "\" of rank ",
        group.rendezvous.rankOf(member), ", which differs from it"));
  }
  /// The plan check proved this; a transport bug must not overrun memory.
  absl::Status checkSame() const {
    for (uint32_t i = 0; i < ranks; ++i)
      if (!isSameCollective(*group.brought[i], request))
        return differs(i);
    return absl::OkStatus();
  }
  /// The table has the addresses of those that came first.
  absl::Status checkKnown() const {
    for (uint32_t i = 0; i < ranks; ++i)
      if (group.brought[i] != known[i])
        return differs(i);
    return absl::OkStatus();
  }

  /// What this rank moves, where all of `of` have their tensors. An all_reduce
  /// is shared out, each rank writes its share to all.
  BoxTable tableFor(const std::vector<const CollectiveRequest *> &of) const {
    BoxTable table;
    for (const Move &move : moves) {
      const Strided &dst = request.parts[move.part].dst;
      BoxTable::Part whole{move.box, 0, move.box.elements()};
      auto src = [&](uint32_t member) -> const Strided & {
        return of[member]->parts[move.part].src;
      };
      if (move.kind == Move::Kind::reduce)
        addReduction(table, move, of);
      else if (move.kind == Move::Kind::zero)
        table.zero(whole, dst.width(), addressOf(dst));
      else if (move.source != index ||
               !move.box.isInPlace(src(index).data, dst.data, dst.width()))
        table.copy(whole, dst.width(), addressOf(src(move.source)),
                   addressOf(dst));
    }
    return table;
  }

  void addReduction(BoxTable &table, const Move &move,
                    const std::vector<const CollectiveRequest *> &of) const {
    bool toAll = request.kind == Kind::all_reduce;
    int64_t count = move.box.elements();
    auto [begin, end] = toAll ? shareOf(count, index, ranks)
                              : std::pair<int64_t, int64_t>(0, count);
    std::vector<DevicePtr> sources, targets;
    for (uint32_t i = 0; i < ranks; ++i) {
      const TransferRequest &part = of[i]->parts[move.part];
      sources.push_back(addressOf(part.src));
      if (toAll || i == index)
        targets.push_back(addressOf(part.dst));
    }
    table.reduce({move.box, begin, end}, request.parts[move.part].dst.dtype,
                 request.reduction, sources, targets);
  }

  PeerTransport::Group &group;
  uint32_t index, ranks;
  CollectiveRequest request;
  std::string what;
  std::vector<Move> moves;
  std::unique_ptr<BoxMoves> boxes;
  std::vector<const CollectiveRequest *> known; // whose addresses the table has
};
} // namespace

PeerTransport::PeerTransport(const Driver &driver, InProcessTransport &host)
    : driver(driver), host(host) {}
PeerTransport::~PeerTransport() = default;

absl::StatusOr<PeerTransport::Group *>
PeerTransport::groupOf(uint32_t rank, const CollectiveRequest &request) {
  std::vector<uint32_t> members = host.ranks().group(rank, request.axes);
  std::unique_ptr<Group> &group = groups[{request.channel, members}];
  if (!group) {
    auto made = std::make_unique<Group>(
        driver, host.meeting(rank, request.axes, request.channel));
    MESHWORK_RETURN_IF_ERROR(made->makeEvents());
    group = std::move(made);
  }
  return group.get();
}

Waiting PeerTransport::waiting(uint32_t rank) const {
  Waiting all{true, absl::StrCat("what rank ", rank, " has on the GPU"), {}};
  for (uint32_t peer = 0; peer < host.numRanks(); ++peer)
    if (peer != rank)
      all.peers.push_back(peer);
  return all;
}

absl::StatusOr<std::unique_ptr<DeviceCollective>>
PeerTransport::prepare(uint32_t rank, CollectiveRequest request) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!kernels)
    MESHWORK_ASSIGN_OR_RETURN(kernels, BoxKernels::load(driver));
  Group *group = nullptr;
  MESHWORK_ASSIGN_OR_RETURN(group, groupOf(rank, request));
  uint32_t index = host.ranks().index(rank, request.axes);
  auto collective =
      std::make_unique<PeerCollective>(*group, index, std::move(request));
  MESHWORK_RETURN_IF_ERROR(collective->allocate(kernels));
  return collective;
}

absl::StatusOr<std::unique_ptr<DeviceTransfer>>
PeerTransport::prepareTransfer(uint32_t rank, PairRequest request) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!kernels)
    MESHWORK_ASSIGN_OR_RETURN(kernels, BoxKernels::load(driver));
  PairLane &lane = host.lane(rank, request);
  return PeerTransfer::create(kernels, lane, rank, std::move(request));
}

} // namespace meshwork::runtime::cuda
