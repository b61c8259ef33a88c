// Collectives: each one alone, then that the ranks of every group meet.
#include "absl/container/flat_hash_map.h"
#include "runtime/core/PlanCheckInternal.h"
#include <algorithm>
#include <deque>

namespace meshwork::runtime {
namespace {

bool reduces(plan::CollectiveKind kind) {
  return kind == plan::CollectiveKind::all_reduce ||
         kind == plan::CollectiveKind::reduce_scatter;
}
bool splits(plan::CollectiveKind kind) {
  return kind == plan::CollectiveKind::all_gather ||
         kind == plan::CollectiveKind::reduce_scatter ||
         kind == plan::CollectiveKind::all_to_all;
}

/// One rank on its way through one list of its program.
struct Walker {
  const Instructions *list;
  uint32_t next = 0;
};

/// Where the first rank of a group waits, and how many have come.
struct Meeting {
  uint32_t arrived = 0;
  uint32_t firstRank = 0;
};

uint32_t programOf(const plan::Plan &plan, uint32_t rank) {
  const auto &list = *plan.program_of_rank();
  return list.Get(list.size() == 1 ? 0 : rank);
}

/// The rank with the coordinates of `rank`, except 0 along `axes`; it stands
/// for the group. The bits of the axes tell groups of different axes apart.
std::pair<uint32_t, uint32_t>
groupKey(const plan::Plan &plan, uint32_t rank,
         const flatbuffers::Vector<uint32_t> &axes) {
  uint32_t bits = 0;
  for (uint32_t axis : axes)
    bits |= 1u << axis;
  uint32_t stride = 1, first = rank;
  for (uint32_t i = plan.mesh()->size(); i-- > 0;) {
    uint32_t size = plan.mesh()->Get(i)->size();
    if (bits >> i & 1)
      first -= (rank / stride % size) * stride;
    stride *= size;
  }
  return {bits, first};
}

absl::Status compare(const plan::Program &a, const plan::Collective &x,
                     const plan::Program &b, const plan::Collective &y) {
  auto list = [](const flatbuffers::Vector<uint32_t> &values) {
    return absl::Span<const uint32_t>(values.data(), values.size());
  };
  if (x.kind() != y.kind() || x.reduction() != y.reduction() ||
      list(*x.axes()) != list(*y.axes()))
    return bad("one is ", plan::EnumNameCollectiveKind(x.kind()),
               ", the other ", plan::EnumNameCollectiveKind(y.kind()),
               ", or their reductions or the order of their axes differ");
  if (x.buffers()->size() != y.buffers()->size())
    return bad("one has ", x.buffers()->size(), " buffers, the other ",
               y.buffers()->size());
  auto elements = [](const plan::View &view) {
    int64_t count = 1;
    if (view.shape())
      for (int64_t size : *view.shape())
        count *= size;
    return count;
  };
  for (uint32_t i = 0; i < x.buffers()->size(); ++i) {
    const plan::View &u = *a.views()->Get(x.buffers()->Get(i));
    const plan::View &v = *b.views()->Get(y.buffers()->Get(i));
    if (u.dtype() != v.dtype() || elements(u) != elements(v))
      return bad("buffer ", i, " has ", elements(u), " elements of ",
                 plan::EnumNameDType(u.dtype()), " in one, ", elements(v),
                 " of ", plan::EnumNameDType(v.dtype()), " in the other");
  }
  return absl::OkStatus();
}

/// Walks all ranks through one list, each waiting at a collective until its
/// whole group is there. Every order of arrival ends the same way, so one
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
      ready.push_back(rank);
    while (!ready.empty()) {
      uint32_t rank = ready.front();
      ready.pop_front();
      MESHWORK_RETURN_IF_ERROR(advance(rank));
    }
    if (meetings.empty())
      return absl::OkStatus();
    uint32_t rank = meetings.begin()->second.firstRank;
    return bad("rank ", rank, " would wait forever at ", where(rank),
               ": the ranks of its group do not all come there");
  }

private:
  const plan::Collective *current(uint32_t rank) const {
    const Walker &walker = walkers[rank];
    return walker.list->Get(walker.next)->op_as_Collective();
  }
  std::string where(uint32_t rank) const {
    const Walker &walker = walkers[rank];
    return absl::StrCat(section, "[", walker.next, "] ",
                        quote(walker.list->Get(walker.next)->name()));
  }

  absl::Status advance(uint32_t rank) {
    Walker &walker = walkers[rank];
    while (walker.next < walker.list->size() && !current(rank))
      ++walker.next;
    if (walker.next == walker.list->size())
      return absl::OkStatus();
    const plan::Collective &op = *current(rank);
    auto key = groupKey(plan, rank, *op.axes());
    Meeting &meeting = meetings[key];
    if (meeting.arrived++ == 0)
      meeting.firstRank = rank;
    uint32_t other = meeting.firstRank;
    absl::Status same =
        compare(*plan.programs()->Get(programOf(plan, other)), *current(other),
                *plan.programs()->Get(programOf(plan, rank)), op);
    if (!same.ok())
      return bad("collectives of ranks ", other, " (", where(other), ") and ",
                 rank, " (", where(rank), ") do not match: ", same.message());
    waiting[key].push_back(rank);
    if (meeting.arrived == groupSize(plan, *op.axes()))
      release(key);
    return absl::OkStatus();
  }

  void release(std::pair<uint32_t, uint32_t> key) {
    for (uint32_t rank : waiting[key]) {
      ++walkers[rank].next;
      ready.push_back(rank);
    }
    waiting.erase(key);
    meetings.erase(key);
  }

  const plan::Plan &plan;
  const char *section;
  std::vector<Walker> walkers;
  std::deque<uint32_t> ready;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, Meeting> meetings;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>>
      waiting;
};
} // namespace

uint64_t groupSize(const plan::Plan &plan,
                   const flatbuffers::Vector<uint32_t> &axes) {
  uint64_t size = 1;
  for (uint32_t axis : axes)
    size *= plan.mesh()->Get(axis)->size();
  return size;
}

absl::Status checkCollective(const ProgramCheck &check,
                             const plan::Collective &op) {
  if (op.kind() > plan::CollectiveKind::MAX ||
      op.reduction() > plan::Reduction::MAX)
    return bad("unknown collective ", static_cast<int>(op.kind()),
               " or reduction ", static_cast<int>(op.reduction()));
  if (!op.axes() || op.axes()->size() == 0 || !op.buffers() ||
      op.buffers()->size() == 0)
    return bad("a collective needs an axis and a buffer");
  uint32_t seen = 0;
  for (uint32_t axis : *op.axes()) {
    if (axis >= check.plan.mesh()->size() || (seen >> axis & 1))
      return bad("axis ", axis, " is not one of ", check.plan.mesh()->size(),
                 " mesh axes, or is named twice");
    seen |= 1u << axis;
  }
  int64_t ranks = static_cast<int64_t>(groupSize(check.plan, *op.axes()));
  std::vector<std::pair<uint64_t, uint64_t>> ranges; // in the arena
  plan::DType dtype = check.views[op.buffers()->Get(0)].dtype;
  for (uint32_t index : *op.buffers()) {
    const ViewInfo &view = check.views[index];
    if (!view.contiguous || view.dtype != dtype)
      return bad("buffer ", describe(view), " is not contiguous, or not ",
                 plan::EnumNameDType(dtype), " as the first one");
    if (reduces(op.kind()) && dtype == plan::DType::i32)
      return bad("integers cannot be reduced");
    if (splits(op.kind()) && view.elements % ranks != 0)
      return bad("buffer ", describe(view), " does not divide into ", ranks,
                 " equal parts");
    uint64_t begin = check.bufferOf(view).offset() + view.offset;
    ranges.push_back({begin, begin + view.spanBytes});
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second)
      return bad("two of its buffers share bytes");
  return absl::OkStatus();
}

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
