#include "lib/Schedules/Index.h"

#include "absl/strings/str_cat.h"
#include "meshwork/Text/Counted.h"

#include <algorithm>

namespace meshwork::schedules {
namespace {

// Each has a cell for each microbatch.
constexpr size_t kinds = static_cast<size_t>(Kind::recvBackward) + 1;
// Numbers of actions fit 32 bits, and so do three times as many nodes.
constexpr size_t mostActions = size_t{1} << 30;
// With fewer pieces of work than these, missing ones are named one by one.
constexpr size_t alwaysIndexed = size_t{1} << 16;

std::string whyOutOfRange(const Table &table, const Action &action) {
  auto stages = static_cast<int64_t>(table.rankOf.size());
  if (action.kind > Kind::recvBackward)
    return "is of no known kind";
  if (action.stage < 0 || action.stage >= stages)
    return absl::StrCat("names stage ", action.stage, ", expected 0 to ",
                        stages - 1);
  if (action.microbatch < 0 || action.microbatch >= table.microbatches)
    return absl::StrCat("names microbatch ", action.microbatch,
                        ", expected 0 to ", table.microbatches - 1);
  return "";
}

void checkSizes(const Table &table, Faults &faults) {
  size_t actions = 0;
  for (const std::vector<Action> &rank : table.ranks)
    actions += rank.size();
  uint64_t pieces =
      uint64_t{table.rankOf.size()} *
      static_cast<uint64_t>(std::max<int32_t>(table.microbatches, 0));
  if (pieces == 0)
    faults.add("the table has no stage or no microbatch, expected one or more");
  else if (actions > mostActions)
    faults.add(absl::StrCat("the table has ", counted(actions, "action"),
                            ", expected at "
                            "most ",
                            mostActions));
  else if (actions < pieces && pieces > alwaysIndexed)
    faults.add(absl::StrCat("the table has ", counted(actions, "action"),
                            ", expected F and B, or F, I and W, "
                            "for each of ",
                            counted(table.rankOf.size(), "stage"), " and ",
                            counted(table.microbatches, "microbatch")));
}

} // namespace

void checkRanges(const Table &table, Faults &faults) {
  auto ranks = static_cast<int64_t>(table.ranks.size());
  for (size_t stage = 0; stage < table.rankOf.size(); ++stage)
    if (table.rankOf[stage] < 0 || table.rankOf[stage] >= ranks)
      faults.add(absl::StrCat("stage ", stage, " is on rank ",
                              table.rankOf[stage], ", expected 0 to ",
                              ranks - 1));
  for (size_t rank = 0; rank < table.ranks.size(); ++rank)
    for (size_t i = 0; i < table.ranks[rank].size(); ++i)
      if (std::string why = whyOutOfRange(table, table.ranks[rank][i]);
          !why.empty())
        faults.at(rank, i, why);
  checkSizes(table, faults);
}

Index::Index(const Table &table) : table(table), begins(1, 0) {
  auto microbatches = static_cast<size_t>(table.microbatches);
  cells.assign(table.rankOf.size() * microbatches * kinds, none);
  uint32_t next = 0;
  for (const std::vector<Action> &rank : table.ranks) {
    for (const Action &action : rank) {
      uint32_t &place =
          cells[cell(action.kind, action.stage, action.microbatch)];
      place = std::min(place, next++);
      transfers |= isTransfer(action.kind);
    }
    ranks.resize(next, static_cast<uint32_t>(begins.size()) - 1);
    begins.push_back(next);
  }
}

size_t Index::cell(Kind kind, int32_t stage, int32_t microbatch) const {
  auto microbatches = static_cast<size_t>(table.microbatches);
  size_t work = static_cast<size_t>(stage) * microbatches +
                static_cast<size_t>(microbatch);
  return work * kinds + static_cast<size_t>(kind);
}

uint32_t Index::find(Kind kind, int32_t stage, int32_t microbatch) const {
  if (stage < 0 || stage >= static_cast<int64_t>(table.rankOf.size()))
    return none;
  return cells[cell(kind, stage, microbatch)];
}

uint32_t Index::findGradient(int32_t stage, int32_t microbatch) const {
  uint32_t whole = find(Kind::backward, stage, microbatch);
  return whole != none ? whole : find(Kind::inputGrad, stage, microbatch);
}

uint32_t Index::findLast(int32_t stage, int32_t microbatch) const {
  uint32_t whole = find(Kind::backward, stage, microbatch);
  return whole != none ? whole : find(Kind::weightGrad, stage, microbatch);
}

const Action &Index::action(uint32_t action) const {
  uint32_t rank = rankOf(action);
  return table.ranks[rank][action - begins[rank]];
}

bool isTransfer(Kind kind) {
  return kind >= Kind::sendForward && kind <= Kind::recvBackward;
}

Edge edgeOf(const Action &action) {
  switch (action.kind) {
  case Kind::sendForward:
    return {Kind::recvForward, action.stage + 1, true};
  case Kind::recvForward:
    return {Kind::sendForward, action.stage - 1, false};
  case Kind::sendBackward:
    return {Kind::recvBackward, action.stage - 1, true};
  default:
    return {Kind::sendBackward, action.stage + 1, false};
  }
}

} // namespace meshwork::schedules
