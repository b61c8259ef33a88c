#include "runtime/comm/InProcess.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "runtime/comm/InProcessTransfer.h"
#include "runtime/comm/Moves.h"
#include "runtime/comm/Reduce.h"
#include <algorithm>
#include <chrono>
#include <cstring>

namespace meshwork::runtime {
namespace {
using Kind = plan::CollectiveKind;

/// Work is handed to threads in chunks of this many elements.
constexpr int64_t chunkElements = 16384;

int64_t nowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Elements [begin, end) of one move's box.
struct Chunk {
  uint32_t move;
  int64_t begin, end;
};
} // namespace

struct InProcessTransport::Group {
  Group(std::vector<uint32_t> members, const InProcessOptions &options,
        const Failure &failure, const std::atomic<uint32_t> &fileWorkers)
      : rendezvous(members, options.timeoutSeconds, options.spins, failure,
                   fileWorkers),
        brought(members.size()), flags(members.size()) {}
  Rendezvous rendezvous;
  // Written by each member before a meeting, read by all between two.
  std::vector<const CollectiveRequest *> brought;
  std::vector<uint32_t> flags;
};

namespace {
class InProcessCollective : public PreparedCollective {
public:
  InProcessCollective(InProcessTransport::Group &group, uint32_t index,
                      CollectiveRequest mine)
      : group(group), index(index), request(std::move(mine)),
        what(request.describe()), ranks(group.rendezvous.size()),
        moves(movesOf(request, index, ranks)) {
    for (uint32_t i = 0; i < moves.size(); ++i)
      addChunks(i);
  }

  absl::Status run(ParallelFor parallel, CommTimes &times) override {
    int64_t start = nowNs();
    group.brought[index] = &request;
    if (ranks > 1)
      if (absl::Status met = group.rendezvous.arriveAndWait(index, what);
          !met.ok())
        return met;
    int64_t together = nowNs();
    if (absl::Status same = checkSame(); !same.ok()) {
      // Every rank finds a difference; none may go while others look.
      absl::Status met = group.rendezvous.arriveAndWait(index, what);
      return met.ok() ? same : met;
    }
    parallel(static_cast<int64_t>(chunks.size()),
             [&](int64_t begin, int64_t end) {
               for (int64_t i = begin; i < end; ++i)
                 run(chunks[static_cast<size_t>(i)]);
             });
    int64_t moved = nowNs();
    absl::Status done = ranks > 1 ? group.rendezvous.arriveAndWait(index, what)
                                  : absl::OkStatus();
    times.moveNs += moved - together;
    times.waitNs += together - start + nowNs() - moved;
    return done;
  }

private:
  void addChunks(uint32_t i) {
    const Move &move = moves[i];
    const TransferRequest &part = request.parts[move.part];
    if (move.kind == Move::Kind::copy && move.source == index &&
        move.box.isInPlace(part.src.data, part.dst.data, part.src.width()))
      return;
    // An all_reduce is shared out by elements, each rank writes its share to
    // all; of the others every rank fills its own destination.
    auto [begin, end] =
        request.kind == Kind::all_reduce
            ? shareOf(move.box.elements(), index, ranks)
            : std::pair<int64_t, int64_t>(0, move.box.elements());
    for (int64_t at = begin; at < end; at += chunkElements)
      chunks.push_back({i, at, std::min(end, at + chunkElements)});
  }

  /// The plan check proved this; a transport bug must not overrun memory.
  absl::Status checkSame() const {
    for (uint32_t i = 0; i < ranks; ++i) {
      const CollectiveRequest &other = *group.brought[i];
      if (!isSameCollective(other, request))
        return absl::InternalError(absl::StrCat(
            what, " meets \"", other.name, "\" of rank ",
            group.rendezvous.rankOf(i), ", which differs from it"));
    }
    return absl::OkStatus();
  }

  const TransferRequest &of(uint32_t member, uint32_t part) const {
    return group.brought[member]->parts[part];
  }

  void run(const Chunk &chunk) const {
    const Move &move = moves[chunk.move];
    const Strided &mine = request.parts[move.part].dst;
    int64_t width = mine.width();
    if (move.kind == Move::Kind::reduce)
      return reduce(chunk, move);
    const std::byte *from = of(move.source, move.part).src.data;
    move.box.forEachRun(chunk.begin, chunk.end, [&](const Run &run) {
      std::byte *to = mine.data + run.dst * width;
      if (move.kind == Move::Kind::zero)
        zeroRun(to, run.dstStride, run.count, width);
      else
        copyRun(from + run.src * width, run.srcStride, to, run.dstStride,
                run.count, width);
    });
  }

  void reduce(const Chunk &chunk, const Move &move) const {
    bool toAll = request.kind == Kind::all_reduce;
    const Strided &mine = request.parts[move.part].dst;
    absl::InlinedVector<const std::byte *, 16> sources(ranks);
    absl::InlinedVector<std::byte *, 16> targets(toAll ? ranks : 1);
    move.box.forEachRun(chunk.begin, chunk.end, [&](const Run &run) {
      for (uint32_t i = 0; i < ranks; ++i)
        sources[i] = of(i, move.part).src.data + run.src * mine.width();
      for (uint32_t i = 0; i < targets.size(); ++i)
        targets[i] =
            of(toAll ? i : index, move.part).dst.data + run.dst * mine.width();
      reduceRun(mine.dtype, request.reduction, sources, run.srcStride,
                absl::MakeSpan(targets), run.dstStride, run.count);
    });
  }

  InProcessTransport::Group &group;
  uint32_t index;
  CollectiveRequest request;
  std::string what;
  uint32_t ranks;
  std::vector<Move> moves;
  std::vector<Chunk> chunks;
};
} // namespace

InProcessTransport::InProcessTransport(Mesh ofRanks,
                                       const InProcessOptions &options)
    : mesh(std::move(ofRanks)), options(options) {
  std::vector<uint32_t> all(mesh.numRanks());
  for (uint32_t i = 0; i < all.size(); ++i)
    all[i] = i;
  world = std::make_unique<Group>(all, options, firstFailure, fileWorkers);
  exchanged.resize(all.size());
  gathered.resize(all.size());
  waits.resize(all.size());
  fileWork.resize(all.size());
}

InProcessTransport::~InProcessTransport() = default;

InProcessTransport::Group &
InProcessTransport::groupOf(uint32_t rank, absl::Span<const uint32_t> axes,
                            uint32_t channel) {
  std::vector<uint32_t> key = mesh.group(rank, axes);
  InProcessOptions ofGroup = options;
  // A communication thread that spins takes a core from computation.
  ofGroup.spins &= channel == 0;
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Group> &group = groups[{channel, key}];
  if (!group)
    group = std::make_unique<Group>(key, ofGroup, firstFailure, fileWorkers);
  return *group;
}

absl::StatusOr<std::unique_ptr<PreparedCollective>>
InProcessTransport::prepare(uint32_t rank, CollectiveRequest request) {
  uint32_t index = mesh.index(rank, request.axes);
  Group &group = groupOf(rank, request.axes, request.channel);
  return std::make_unique<InProcessCollective>(group, index,
                                               std::move(request));
}

PairLane &InProcessTransport::lane(uint32_t rank, const PairRequest &request) {
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<PairLane> &lane =
      lanes[request.sends ? std::tuple(rank, request.peer, request.lane)
                          : std::tuple(request.peer, rank, request.lane)];
  if (!lane)
    lane =
        std::make_unique<PairLane>(*this, options.timeoutSeconds, firstFailure);
  return *lane;
}

absl::StatusOr<std::unique_ptr<PreparedTransfer>>
InProcessTransport::prepareTransfer(uint32_t rank, PairRequest request) {
  PairLane &meets = lane(rank, request);
  return std::make_unique<InProcessTransfer>(
      meets, PairLane::Side{rank, request.peer, request.sends,
                            request.describe(), std::move(request.parts)});
}

Rendezvous &InProcessTransport::meeting(uint32_t rank,
                                        absl::Span<const uint32_t> axes,
                                        uint32_t channel) {
  return groupOf(rank, axes, channel).rendezvous;
}

void InProcessTransport::setWaiting(uint32_t rank, const Waiting &waiting) {
  std::lock_guard<std::mutex> lock(waitsMutex);
  waits[rank] = waiting;
}

void InProcessTransport::setFileWork(uint32_t rank, std::string what) {
  std::lock_guard<std::mutex> lock(waitsMutex);
  fileWorkers += !what.empty();
  fileWorkers -= !fileWork[rank].empty();
  fileWork[rank] = std::move(what);
}

absl::Status InProcessTransport::blame(uint32_t rank, const Waiting &mine,
                                       double seconds) {
  absl::Status found =
      runtime::blame(rank, numRanks(), mine, seconds,
                     [&](uint32_t peer) -> std::optional<Waiting> {
                       std::lock_guard<std::mutex> lock(waitsMutex);
                       if (waits[peer].active || fileWork[peer].empty())
                         return waits[peer];
                       return Waiting{false, fileWork[peer], {}, true};
                     });
  return firstFailure.isSet() ? firstFailure.status() : found;
}

/// Who is here already does not hold up others.
absl::Status InProcessTransport::meetAll(uint32_t rank, const char *what) {
  Waiting mine{true, what, {}};
  for (uint32_t peer = 0; peer < numRanks(); ++peer)
    if (peer != rank)
      mine.peers.push_back(peer);
  setWaiting(rank, mine);
  absl::Status met = world->rendezvous.arriveAndWait(rank, what);
  setWaiting(rank, {});
  return met;
}

absl::StatusOr<uint32_t>
InProcessTransport::agree(uint32_t rank, uint32_t flags, const char *what) {
  world->flags[rank] = flags;
  if (absl::Status met = meetAll(rank, what); !met.ok())
    return met;
  uint32_t all = 0;
  for (uint32_t other : world->flags)
    all |= other;
  // Nobody may write the next flags before everybody has read these.
  if (absl::Status met = meetAll(rank, what); !met.ok())
    return met;
  return all;
}

absl::StatusOr<std::vector<std::string>>
InProcessTransport::exchange(uint32_t rank, std::string mine,
                             const char *what) {
  exchanged[rank] = std::move(mine);
  absl::StatusOr<uint32_t> met = agree(rank, 0, what);
  if (!met.ok())
    return met.status();
  std::vector<std::string> texts = exchanged;
  // As in agree.
  met = agree(rank, 0, what);
  if (!met.ok())
    return met.status();
  return texts;
}

// The last one delivers, so nobody waits. Nobody writes the next text before
// that one has come to the meeting in between.
absl::Status InProcessTransport::gather(uint32_t rank, std::string mine,
                                        Deliver deliver) {
  gathered[rank] = std::move(mine);
  if ((given.fetch_add(1, std::memory_order_acq_rel) + 1) % numRanks() != 0)
    return absl::OkStatus();
  return deliver(gathered);
}

void InProcessTransport::abort(uint32_t rank, const absl::Status &why) {
  if (!firstFailure.set(rank, why))
    return;
  std::lock_guard<std::mutex> lock(mutex);
  for (auto &[key, group] : groups)
    group->rendezvous.wake();
  for (auto &[key, lane] : lanes)
    lane->wake();
  world->rendezvous.wake();
}

} // namespace meshwork::runtime
