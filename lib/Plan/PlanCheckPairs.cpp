// That each send of a program has its receive in another one, and the reverse.
#include "lib/Plan/PlanCheckInternal.h"
#include "lib/Plan/PlanOrder.h"
#include "lib/Plan/SameViews.h"

namespace meshwork::plan {

Counterpart counterpartOf(const ListShape &list) {
  switch (list.kind) {
  case ListKind::send:
    return {ListKind::recv, uint64_t{list.stage} + 1};
  case ListKind::recv:
    return {ListKind::send, uint64_t{list.stage} - 1};
  case ListKind::send_grad:
    return {ListKind::recv_grad, uint64_t{list.stage} - 1};
  default:
    return {ListKind::send_grad, uint64_t{list.stage} + 1};
  }
}

namespace {

/// Transports number transfers by it.
constexpr uint32_t maxStage = 16383;

/// One such list of one rank, and its other side.
class Pair {
public:
  Pair(const PlanOrder &order, uint32_t rank, uint32_t list)
      : order(order), rank(rank), list(list), mine(order.of(rank)),
        op(transferOf(mine.program, list)) {}

  absl::Status check() {
    const Axis &axis = *order.plan.mesh()->Get(op.axis);
    if (mine.table.lists()[list].stage > maxStage)
      return bad(name(), ", expected at most stage ", maxStage);
    if (!(order.ranks.axes() >> op.axis & 1))
      return bad(name(), " is along axis ", quote(axis.name()),
                 ", expected one on which programs depend");
    if (order.ranks.coordinate(rank, op.axis) == op.peer)
      return bad(name(), " is between rank ", order.ranks.rank(rank),
                 " and itself");
    peer = order.ranks.at(rank, op.axis, op.peer);
    if (absl::Status status = findOther(); !status.ok())
      return status;
    if (absl::Status status = checkParts(); !status.ok())
      return status;
    return checkOrder();
  }

private:
  std::string name() const { return nameOf(mine.table.lists()[list]); }
  /// "rank 0: send goes to rank 1".
  std::string between() const {
    bool sends = plan::sends(mine.table.lists()[list].kind);
    return absl::StrCat("rank ", order.ranks.rank(rank), ": ", name(),
                        sends ? " goes to rank " : " comes from rank ",
                        order.ranks.rank(peer));
  }

  absl::Status findOther() {
    Counterpart wanted = counterpartOf(mine.table.lists()[list]);
    auto found = order.of(peer).numbers.find({wanted.kind, wanted.stage});
    if (found == order.of(peer).numbers.end())
      return bad(
          between(), ", which has no ",
          wanted.stage > UINT32_MAX
              ? absl::StrCat(EnumNameListKind(wanted.kind),
                             " of a stage before the first")
              : nameOf({wanted.kind, static_cast<uint32_t>(wanted.stage)}));
    other = found->second;
    TransferOf its = transferOf(order.of(peer).program, other);
    if (its.axis != op.axis ||
        its.peer != order.ranks.coordinate(rank, op.axis))
      return bad(between(), ", whose ",
                 nameOf(order.of(peer).table.lists()[other]),
                 " is with the rank at ", its.peer, " of axis ",
                 quote(order.plan.mesh()->Get(its.axis)->name()));
    return absl::OkStatus();
  }

  absl::Status checkParts() const {
    const Program &a = mine.program, &b = order.of(peer).program;
    TransferOf its = transferOf(b, other);
    if (op.parts->size() != its.parts->size())
      return bad(between(), " with ", op.parts->size(), " parts, expected ",
                 its.parts->size(), " as there");
    for (uint32_t i = 0; i < op.parts->size(); ++i)
      if (!sameShape(*a.views()->Get(op.parts->Get(i)),
                     *b.views()->Get(its.parts->Get(i))))
        return bad(between(), ", but part ", i,
                   " has another type or shape there");
    return absl::OkStatus();
  }

  absl::Status checkOrder() const {
    const std::vector<uint32_t> &here = mine.microbatches[list],
                                &there = order.of(peer).microbatches[other];
    for (size_t i = 0; i < std::min(here.size(), there.size()); ++i)
      if (here[i] != there[i])
        return bad(between(), ", but transfer ", i, " is of microbatch ",
                   here[i], " here and ", there[i],
                   " there; expected one order of microbatches");
    return absl::OkStatus(); // Both are of all microbatches.
  }

  const PlanOrder &order;
  uint32_t rank, list, peer = 0, other = 0;
  const ProgramOrder &mine;
  TransferOf op;
};
} // namespace

absl::Status checkPairs(const PlanOrder &order) {
  for (uint32_t rank = 0; rank < order.ranks.size(); ++rank) {
    const std::vector<ListShape> &lists = order.of(rank).table.lists();
    for (uint32_t list = 0; list < lists.size(); ++list)
      if (plan::sends(lists[list].kind) || plan::receives(lists[list].kind))
        MESHWORK_RETURN_IF_ERROR(Pair(order, rank, list).check());
  }
  return absl::OkStatus();
}

} // namespace meshwork::plan
