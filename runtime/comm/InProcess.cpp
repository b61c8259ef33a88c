#include "runtime/comm/InProcess.h"
#include "absl/strings/str_cat.h"
#include "runtime/comm/Reduce.h"
#include <algorithm>
#include <chrono>
#include <cstring>

namespace meshwork::runtime {
namespace {
using Kind = plan::CollectiveKind;

/// Work is handed to threads in chunks of this many elements.
constexpr int64_t chunkElements = 16384;
/// Slices start at multiples of this, so that no cache line has two writers.
constexpr int64_t sliceUnit = 32;

int64_t nowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Elements [begin, end) of one piece.
struct Chunk {
  uint32_t piece;
  int64_t begin, end;
};
} // namespace

struct InProcessTransport::Group {
  Group(std::vector<uint32_t> members, const InProcessOptions &options,
        const Failure &failure)
      : rendezvous(members, options.timeoutSeconds, options.spins, failure),
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
        what(absl::StrCat(plan::EnumNameCollectiveKind(request.kind), " \"",
                          request.name, "\"")) {
    ranks = group.rendezvous.size();
    for (uint32_t i = 0; i < request.pieces.size(); ++i)
      addChunks(i);
  }

  absl::Status run(ParallelFor parallel, CommTimes &times) override {
    if (ranks == 1)
      return absl::OkStatus();
    int64_t start = nowNs();
    group.brought[index] = &request;
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
                 move(chunks[static_cast<size_t>(i)]);
             });
    int64_t moved = nowNs();
    absl::Status done = group.rendezvous.arriveAndWait(index, what);
    times.moveNs += moved - together;
    times.waitNs += together - start + nowNs() - moved;
    return done;
  }

private:
  void addChunks(uint32_t piece) {
    int64_t n = request.pieces[piece].elements;
    auto [begin, end] = share(n);
    for (int64_t at = begin; at < end; at += chunkElements)
      chunks.push_back({piece, at, std::min(end, at + chunkElements)});
  }

  /// What this rank works on: its slice, or for broadcast its whole copy.
  /// For all_to_all the parts are swapped in pairs by the lower index, and a
  /// chunk is the other's index.
  std::pair<int64_t, int64_t> share(int64_t n) const {
    if (request.kind == Kind::all_to_all || request.kind == Kind::all_gather ||
        request.kind == Kind::reduce_scatter)
      return {n / ranks * index, n / ranks * (index + 1)};
    auto cut = [&](int64_t i) {
      return i == ranks ? n : n * i / ranks / sliceUnit * sliceUnit;
    };
    return {cut(index), cut(index + 1)};
  }

  /// The plan check proved this; a transport bug must not overrun memory.
  absl::Status checkSame() const {
    for (uint32_t i = 0; i < ranks; ++i) {
      const CollectiveRequest &other = *group.brought[i];
      bool same = other.kind == request.kind && other.dtype == request.dtype &&
                  other.pieces.size() == request.pieces.size();
      for (size_t p = 0; same && p < request.pieces.size(); ++p)
        same = other.pieces[p].elements == request.pieces[p].elements;
      if (!same)
        return absl::InternalError(absl::StrCat(
            what, " meets \"", other.name, "\" of rank ",
            group.rendezvous.rankOf(i), ", which differs from it"));
    }
    return absl::OkStatus();
  }

  std::byte *of(uint32_t member, uint32_t piece) const {
    return group.brought[member]->pieces[piece].data;
  }

  void move(const Chunk &chunk) const {
    int64_t bytes = request.dtype == plan::DType::bf16 ? 2 : 4;
    size_t length = static_cast<size_t>((chunk.end - chunk.begin) * bytes);
    switch (request.kind) {
    case Kind::all_reduce:
    case Kind::reduce_scatter:
      return reduce(chunk);
    case Kind::all_gather:
      for (uint32_t i = 0; i < ranks; ++i)
        if (i != index)
          std::memcpy(of(i, chunk.piece) + chunk.begin * bytes,
                      of(index, chunk.piece) + chunk.begin * bytes, length);
      return;
    case Kind::all_to_all:
      return exchange(chunk, bytes);
    case Kind::permute:
      return; // Refused by prepare.
    }
  }

  void reduce(const Chunk &chunk) const {
    std::vector<const std::byte *> sources(ranks);
    std::vector<std::byte *> targets;
    for (uint32_t i = 0; i < ranks; ++i) {
      sources[i] = of(i, chunk.piece);
      if (request.kind == Kind::all_reduce || i == index)
        targets.push_back(of(i, chunk.piece));
    }
    reduceRange(request.dtype, request.reduction, sources, targets, chunk.begin,
                chunk.end);
  }

  /// Swaps my part `i`, for each later rank i, with its part `index`. `chunk`
  /// lies in my own part and gives the range within a part.
  void exchange(const Chunk &chunk, int64_t bytes) const {
    int64_t part = request.pieces[chunk.piece].elements / ranks;
    int64_t begin = chunk.begin - part * index, end = chunk.end - part * index;
    for (uint32_t i = index + 1; i < ranks; ++i) {
      std::byte *mine = of(index, chunk.piece) + (part * i + begin) * bytes;
      std::byte *theirs = of(i, chunk.piece) + (part * index + begin) * bytes;
      std::swap_ranges(mine, mine + (end - begin) * bytes, theirs);
    }
  }

  InProcessTransport::Group &group;
  uint32_t index, ranks = 0;
  CollectiveRequest request;
  std::string what;
  std::vector<Chunk> chunks;
};
} // namespace

InProcessTransport::InProcessTransport(Mesh ofRanks,
                                       const InProcessOptions &options)
    : mesh(std::move(ofRanks)), options(options) {
  std::vector<uint32_t> all(mesh.numRanks());
  for (uint32_t i = 0; i < all.size(); ++i)
    all[i] = i;
  world = std::make_unique<Group>(all, options, firstFailure);
}

InProcessTransport::~InProcessTransport() = default;

InProcessTransport::Group &
InProcessTransport::groupOf(uint32_t rank, absl::Span<const uint32_t> axes) {
  std::vector<uint32_t> members = mesh.group(rank, axes);
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Group> &group = groups[members];
  if (!group)
    group = std::make_unique<Group>(members, options, firstFailure);
  return *group;
}

absl::StatusOr<std::unique_ptr<PreparedCollective>>
InProcessTransport::prepare(uint32_t rank, CollectiveRequest request) {
  if (request.kind == Kind::permute)
    return absl::UnimplementedError("permute is not run by this version");
  uint32_t index = mesh.index(rank, request.axes);
  Group &group = groupOf(rank, request.axes);
  return std::make_unique<InProcessCollective>(group, index,
                                               std::move(request));
}

absl::StatusOr<uint32_t>
InProcessTransport::agree(uint32_t rank, uint32_t flags, const char *what) {
  world->flags[rank] = flags;
  if (absl::Status met = world->rendezvous.arriveAndWait(rank, what); !met.ok())
    return met;
  uint32_t all = 0;
  for (uint32_t other : world->flags)
    all |= other;
  // Nobody may write the next flags before everybody has read these.
  if (absl::Status met = world->rendezvous.arriveAndWait(rank, what); !met.ok())
    return met;
  return all;
}

void InProcessTransport::abort(uint32_t rank, const absl::Status &why) {
  if (!firstFailure.set(rank, why))
    return;
  std::lock_guard<std::mutex> lock(mutex);
  for (auto &[members, group] : groups)
    group->rendezvous.wake();
  world->rendezvous.wake();
}

} // namespace meshwork::runtime
