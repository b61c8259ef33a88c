// Where GATHER, FREE and REDUCE stand.
#include "lib/Schedules/Live.h"
#include "lib/Schedules/LowerParts.h"

#include <algorithm>
#include <set>

namespace meshwork::schedules {
namespace {

/// Consecutive work of one stage, and where it begins. Stages whose work starts
/// together have a turn each, with one begin.
struct Turn {
  int32_t stage = 0;
  size_t begin = 0;
};

/// The stages whose parameters a group of actions needs; W needs none.
std::set<int32_t> stagesOf(const std::vector<Action> &row, size_t begin,
                           size_t end) {
  std::set<int32_t> stages;
  for (size_t at = begin; at < end; ++at)
    if (isCompute(row[at].kind) && row[at].kind != Kind::weightGrad)
      stages.insert(row[at].stage);
  return stages;
}

std::vector<Turn> turnsOf(const std::vector<Action> &row) {
  std::vector<Turn> turns;
  for (size_t begin = 0, end; begin < row.size(); begin = end) {
    end = endOfGroup(row, begin);
    std::set<int32_t> stages = stagesOf(row, begin, end);
    for (int32_t stage : stages)
      if (stages.size() > 1 || turns.empty() || turns.back().stage != stage)
        turns.push_back({stage, begin});
  }
  return turns;
}

/// The turns that must have their parameters while the turn `at` runs: all that
/// start together with it, and the next `lookahead`.
size_t endOfWindow(const std::vector<Turn> &turns, size_t at,
                   int32_t lookahead) {
  size_t end = at + 1;
  while (end < turns.size() && turns[end].begin == turns[at].begin)
    ++end;
  return end + std::min(turns.size() - end, static_cast<size_t>(lookahead));
}

void change(std::set<int32_t> &whole, const std::set<int32_t> &wanted,
            size_t before, std::vector<Addition> &to) {
  for (int32_t stage : whole)
    if (!wanted.contains(stage))
      to.push_back({before, {Kind::free, stage}});
  for (int32_t stage : wanted)
    if (!whole.contains(stage))
      to.push_back({before, {Kind::gather, stage}});
  whole = wanted;
}

std::vector<Addition> gathersOfRank(const std::vector<Action> &row,
                                    int32_t lookahead) {
  std::vector<Turn> turns = turnsOf(row);
  std::vector<Addition> result;
  std::set<int32_t> whole;
  for (size_t at = 0; at < turns.size(); ++at) {
    if (at > 0 && turns[at].begin == turns[at - 1].begin)
      continue;
    std::set<int32_t> wanted;
    for (size_t i = at; i < endOfWindow(turns, at, lookahead); ++i)
      wanted.insert(turns[i].stage);
    change(whole, wanted, turns[at].begin, result);
  }
  change(whole, {}, row.size(), result);
  return result;
}

std::vector<Addition> reducesOfRank(const std::vector<Action> &row) {
  std::vector<Addition> result;
  std::set<int32_t> reduced;
  for (size_t at = row.size(); at-- > 0;)
    if ((row[at].kind == Kind::backward || row[at].kind == Kind::weightGrad) &&
        reduced.insert(row[at].stage).second)
      result.push_back({endOfGroup(row, at), {Kind::reduce, row[at].stage}});
  std::ranges::reverse(result);
  return result;
}

} // namespace

Additions gathersOf(const Table &table, int32_t lookahead) {
  Additions additions;
  for (const std::vector<Action> &row : table.ranks)
    additions.push_back(gathersOfRank(row, lookahead));
  return additions;
}

Additions reducesOf(const Table &table) {
  Additions additions;
  for (const std::vector<Action> &row : table.ranks)
    additions.push_back(reducesOfRank(row));
  return additions;
}

} // namespace meshwork::schedules
