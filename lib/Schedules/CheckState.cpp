// What a stage has at each place of its rank's order: parameters, summed
// gradients, memory.
#include "lib/Schedules/Checks.h"
#include "lib/Schedules/Live.h"

#include "absl/strings/str_cat.h"

#include <cstdint>

namespace meshwork::schedules {
namespace {

bool hasAny(const Table &table, Kind kind) {
  for (const std::vector<Action> &rank : table.ranks)
    for (const Action &action : rank)
      if (action.kind == kind)
        return true;
  return false;
}

bool usesParameters(Kind kind) {
  return isCompute(kind) && kind != Kind::weightGrad;
}

bool makesGradients(Kind kind) {
  return kind == Kind::backward || kind == Kind::weightGrad;
}

constexpr size_t nowhere = SIZE_MAX;

/// What is wrong with an action whose stage is whole since action `since`.
std::string whyNotHere(const Action &action, size_t since) {
  bool isWhole = since != nowhere;
  if (action.kind == Kind::gather && isWhole)
    return absl::StrCat("is whole since action ", since + 1,
                        ", expected FREE in between");
  if (!isWhole && (action.kind == Kind::free || usesParameters(action.kind)))
    return absl::StrCat("the parameters are sharded here, expected ",
                        action.stage, "GATHER before");
  return "";
}

/// GATHER and FREE in turns, and no use outside of them. `since` says for each
/// stage where it was gathered.
void checkGathered(const Table &table, size_t rank, std::vector<size_t> &since,
                   Faults &faults) {
  const std::vector<Action> &actions = table.ranks[rank];
  for (size_t i = 0; i < actions.size(); ++i) {
    size_t &gathered = since[static_cast<size_t>(actions[i].stage)];
    if (std::string why = whyNotHere(actions[i], gathered); !why.empty())
      faults.at(rank, i, why);
    if (actions[i].kind == Kind::gather)
      gathered = i;
    else if (actions[i].kind == Kind::free)
      gathered = nowhere;
  }
}

void checkGathered(const Table &table, Faults &faults) {
  std::vector<size_t> since(table.rankOf.size(), nowhere);
  for (size_t rank = 0; rank < table.ranks.size(); ++rank)
    checkGathered(table, rank, since, faults);
  for (size_t stage = 0; stage < since.size(); ++stage)
    if (since[stage] != nowhere)
      faults.add(absl::StrCat("rank ", table.rankOf[stage], ", action ",
                              since[stage] + 1, " (", stage,
                              "GATHER): is never undone, expected ", stage,
                              "FREE after its last use"));
}

/// REDUCE of every stage, after its last gradient; that it stands once is
/// checked elsewhere.
void checkReduced(const Table &table, Faults &faults) {
  std::vector<bool> reduced(table.rankOf.size());
  for (size_t rank = 0; rank < table.ranks.size(); ++rank)
    for (size_t i = 0; i < table.ranks[rank].size(); ++i) {
      const Action &action = table.ranks[rank][i];
      auto stage = static_cast<size_t>(action.stage);
      if (action.kind == Kind::reduce)
        reduced[stage] = true;
      else if (makesGradients(action.kind) && reduced[stage])
        faults.at(rank, i,
                  absl::StrCat("stands after ", stage,
                               "REDUCE, expected before: its "
                               "gradients would be missing"));
    }
  for (size_t stage = 0; stage < reduced.size(); ++stage)
    if (!reduced[stage])
      faults.add(absl::StrCat("rank ", table.rankOf[stage], ": ", stage,
                              "REDUCE is missing, expected one for each stage "
                              "where any has one"));
}

} // namespace

void checkParameters(const Table &table, Faults &faults) {
  if (hasAny(table, Kind::gather) || hasAny(table, Kind::free))
    checkGathered(table, faults);
  if (hasAny(table, Kind::reduce))
    checkReduced(table, faults);
}

void checkMemory(const Table &table, double memory, double stash,
                 Faults &faults) {
  for (size_t rank = 0; memory > 0 && rank < table.ranks.size(); ++rank) {
    auto [most, above] = keptBy(table.ranks[rank], stash, memory);
    if (above < table.ranks[rank].size())
      faults.at(rank, above,
                absl::StrCat("exceeds the ", memory,
                             memory == 1 ? " microbatch" : " microbatches",
                             " that may be kept at once; the rank keeps up to ",
                             most));
  }
}

} // namespace meshwork::schedules
