#include "lib/Schedules/Checks.h"

#include "lib/Schedules/Csv.h"
#include "lib/Schedules/Live.h"

#include "absl/strings/str_cat.h"

#include <array>

namespace meshwork::schedules {
namespace {

/// Calls `visit(rank, position, action)` for all.
template <typename Visit> void forEach(const Table &table, const Visit &visit) {
  for (size_t rank = 0; rank < table.ranks.size(); ++rank)
    for (size_t i = 0; i < table.ranks[rank].size(); ++i)
      visit(rank, i, table.ranks[rank][i]);
}

std::string placeOf(const Index &index, uint32_t action) {
  return absl::StrCat("rank ", index.rankOf(action), ", action ",
                      index.positionOf(action) + 1);
}

/// Why an action must not start together with the next one.
std::string whyNotTogether(const std::vector<Action> &rank, size_t i) {
  if (i + 1 == rank.size())
    return "starts together with the next action, but is the last";
  Kind one = rank[i].kind, next = rank[i + 1].kind;
  bool may = (isTransfer(one) && isTransfer(next)) ||
             (isCompute(one) && isCompute(next));
  return may ? ""
             : absl::StrCat("starts together with ", text(rank[i + 1]),
                            ", expected two transfers or two of F, B, I, W");
}

/// Checks that `needed`, where it is on the rank, stands before `action`.
void checkBefore(const Index &index, uint32_t needed, uint32_t action,
                 Faults &faults) {
  if (needed == Index::none)
    return;
  uint32_t rank = index.rankOf(action);
  if (index.rankOf(needed) == rank && needed > action)
    faults.at(rank, index.positionOf(action),
              absl::StrCat("expected after ", text(index.action(needed)),
                           ", which is action ", index.positionOf(needed) + 1));
}

/// What an action needs, unless another rank makes it.
std::array<uint32_t, 3> needsOf(const Index &index, const Action &action) {
  int32_t stage = action.stage, microbatch = action.microbatch;
  auto find = [&](Kind kind, int32_t of) {
    return index.find(kind, of, microbatch);
  };
  uint32_t none = Index::none;
  switch (action.kind) {
  case Kind::forward:
    return {find(Kind::forward, stage - 1), find(Kind::recvForward, stage),
            none};
  case Kind::backward:
  case Kind::inputGrad:
    return {find(Kind::forward, stage),
            index.findGradient(stage + 1, microbatch),
            find(Kind::recvBackward, stage)};
  case Kind::weightGrad:
    return {find(Kind::inputGrad, stage), none, none};
  case Kind::sendForward:
    return {find(Kind::forward, stage), none, none};
  case Kind::sendBackward:
    return {index.findGradient(stage, microbatch), none, none};
  default:
    return {none, none, none};
  }
}

std::string whyUnmatched(const Table &table, const Index &index,
                         const Action &action) {
  Edge edge = edgeOf(action);
  if (edge.peerStage < 0 ||
      edge.peerStage >= static_cast<int64_t>(table.rankOf.size()))
    return absl::StrCat("there is no stage ", edge.peerStage,
                        edge.isSend ? " to send to" : " to receive from");
  int32_t peer = table.rankOf[static_cast<size_t>(edge.peerStage)];
  if (peer == table.rankOf[static_cast<size_t>(action.stage)])
    return absl::StrCat("stages ", action.stage, " and ", edge.peerStage,
                        " are both on rank ", peer, ", expected no transfer");
  Action match{edge.peerKind, edge.peerStage, action.microbatch};
  bool found =
      index.find(match.kind, match.stage, match.microbatch) != Index::none;
  return found ? ""
               : absl::StrCat("rank ", peer, " has no ", text(match),
                              ", expected one to match");
}

/// Of work whose input is made on another rank and not transferred at all.
std::string whyWithoutInput(const Table &table, const Index &index,
                            const Action &action) {
  bool isForward = action.kind == Kind::forward;
  bool isGradient =
      action.kind == Kind::backward || action.kind == Kind::inputGrad;
  int32_t from = action.stage + (isForward ? -1 : 1);
  bool isEnd = from < 0 || from >= static_cast<int64_t>(table.rankOf.size());
  if (!(isForward || isGradient) || isEnd ||
      table.rankOf[static_cast<size_t>(from)] ==
          table.rankOf[static_cast<size_t>(action.stage)])
    return "";
  Action receive{isForward ? Kind::recvForward : Kind::recvBackward,
                 action.stage, action.microbatch};
  Action send{isForward ? Kind::sendForward : Kind::sendBackward, from,
              action.microbatch};
  auto stands = [&](const Action &one) {
    return index.find(one.kind, one.stage, one.microbatch) != Index::none;
  };
  if (stands(receive) || stands(send)) // the one that is there names the other
    return "";
  return absl::StrCat("its input is never moved here, expected ", text(receive),
                      " before, and ", text(send), " on rank ",
                      table.rankOf[static_cast<size_t>(from)]);
}

} // namespace

void checkPlaces(const Table &table, const Index &index, Faults &faults) {
  forEach(table, [&](size_t rank, size_t i, const Action &action) {
    int32_t home = table.rankOf[static_cast<size_t>(action.stage)];
    if (home != static_cast<int64_t>(rank))
      faults.at(rank, i,
                absl::StrCat("stage ", action.stage, " is on rank ", home,
                             ", expected there"));
    uint32_t first = index.find(action.kind, action.stage, action.microbatch);
    if (first != index.number(rank, i))
      faults.at(rank, i,
                absl::StrCat("stands twice, expected once: first as ",
                             placeOf(index, first)));
    if (!action.withNext)
      return;
    if (std::string why = whyNotTogether(table.ranks[rank], i); !why.empty())
      faults.at(rank, i, why);
  });
}

void checkCounts(const Table &table, const Index &index, Faults &faults) {
  for (int32_t stage = 0; stage < static_cast<int64_t>(table.rankOf.size());
       ++stage)
    for (int32_t i = 0; i < table.microbatches; ++i) {
      auto has = [&](Kind kind) {
        return index.find(kind, stage, i) != Index::none;
      };
      auto miss = [&](Kind kind, const char *also) {
        faults.add(absl::StrCat("rank ",
                                table.rankOf[static_cast<size_t>(stage)], ": ",
                                text({kind, stage, i}), " is missing", also));
      };
      bool whole = has(Kind::backward), input = has(Kind::inputGrad),
           weight = has(Kind::weightGrad);
      if (!has(Kind::forward))
        miss(Kind::forward, "");
      if (whole && (input || weight))
        faults.add(absl::StrCat(
            placeOf(index, index.find(Kind::backward, stage, i)), " (",
            text({Kind::backward, stage, i}),
            "): makes both gradients, expected no ",
            text({input ? Kind::inputGrad : Kind::weightGrad, stage, i})));
      else if (!whole && !input && !weight)
        miss(Kind::backward, ", or I and W instead");
      else if (!whole && !(input && weight))
        miss(input ? Kind::weightGrad : Kind::inputGrad, "");
    }
}

void checkOrder(const Table &table, const Index &index, Faults &faults) {
  forEach(table, [&](size_t rank, size_t i, const Action &action) {
    for (uint32_t needed : needsOf(index, action))
      checkBefore(index, needed, index.number(rank, i), faults);
  });
}

void checkTransfers(const Table &table, const Index &index, Faults &faults) {
  if (!index.hasTransfers())
    return;
  forEach(table, [&](size_t rank, size_t i, const Action &action) {
    std::string why = isTransfer(action.kind)
                          ? whyUnmatched(table, index, action)
                          : whyWithoutInput(table, index, action);
    if (!why.empty())
      faults.at(rank, i, why);
  });
}

} // namespace meshwork::schedules
