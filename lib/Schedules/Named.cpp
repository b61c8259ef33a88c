#include "lib/Schedules/Named.h"
#include "lib/Schedules/Live.h"
#include "lib/Schedules/Rules.h"
#include "lib/Spec/ScheduleNames.h"

#include <algorithm>

namespace meshwork::schedules {
namespace {

int32_t ranksOf(const Work &work) {
  return static_cast<int32_t>(work.stagesOf.size());
}

/// Groups of microbatches, in turn through the `stages` of a rank. One group
/// for each P microbatches; what P does not divide makes groups larger, since a
/// smaller one would wait for its own return from the last rank.
Turns turnsOf(const std::vector<int32_t> &stages, const Work &work) {
  int32_t groups = std::max(1, work.microbatches / ranksOf(work));
  Turns turns;
  for (int32_t group = 0; group < groups; ++group) {
    int32_t size = work.microbatches / groups +
                   (group < work.microbatches % groups ? 1 : 0);
    for (size_t at = 0; at < stages.size(); ++at) {
      turns.forward.insert(turns.forward.end(), static_cast<size_t>(size),
                           stages[at]);
      turns.backward.insert(turns.backward.end(), static_cast<size_t>(size),
                            stages[stages.size() - 1 - at]);
    }
  }
  return turns;
}

template <typename LimitsOf>
std::unique_ptr<Rule> withLimits(const Work &work, const LimitsOf &limitsOf) {
  std::vector<Limits> limits;
  std::vector<Turns> turns;
  for (int32_t rank = 0; rank < ranksOf(work); ++rank) {
    limits.push_back(limitsOf(rank));
    turns.push_back(turnsOf(work.stagesOf[static_cast<size_t>(rank)], work));
  }
  return limitsRule(work, std::move(limits), std::move(turns));
}

// All F, then all B. Huang et al., arXiv 1811.06965.
std::unique_ptr<Rule> gpipe(const Work &work) {
  return withLimits(work, [&](int32_t) { return Limits{work.microbatches}; });
}

// Rank r begins with P - 1 - r F, then F and B take turns. Narayanan et al.,
// arXiv 2104.04473, section 2.2.1; Megatron-LM counts the same warm-up.
std::unique_ptr<Rule> oneForwardOneBackward(const Work &work) {
  return withLimits(work,
                    [&](int32_t rank) { return Limits{ranksOf(work) - rank}; });
}

// Rank r begins with 2 (P - 1 - r) + (v - 1) N F, N microbatches in a group.
// arXiv 2104.04473, section 2.2.2; the warm-up is Megatron-LM's
// (get_pp_rank_microbatches; there N = P and P divides m).
std::unique_ptr<Rule> interleaved(const Work &work) {
  auto chunks = static_cast<int32_t>(work.stagesOf[0].size());
  if (chunks == 1)
    return oneForwardOneBackward(work);
  int32_t ranks = ranksOf(work), m = work.microbatches;
  int32_t groups = std::max(1, m / ranks), largest = (m + groups - 1) / groups;
  return withLimits(work, [&](int32_t rank) {
    return Limits{2 * (ranks - 1 - rank) + (chunks - 1) * largest + 1};
  });
}

// As 1F1B with I in place of B; W lags I by the rank's number, so that no rank
// keeps more than P microbatches. Qi et al., arXiv 2401.10241, section 2.
std::unique_ptr<Rule> zbH1(const Work &work) {
  return withLimits(work, [&](int32_t rank) {
    return Limits{ranksOf(work) - rank, true, rank};
  });
}

// Fills the warm-up with F: 2 (P - r) - 1 of them, and keeps 2 P - 1.
// arXiv 2401.10241, section 2.
std::unique_ptr<Rule> zbH2(const Work &work) {
  return withLimits(work, [&](int32_t rank) {
    return Limits{2 * (ranksOf(work) - rank) - 1, true, 2 * rank};
  });
}

} // namespace

const std::vector<NamedSchedule> &namedSchedules() {
  using spec::Schedule;
  static const std::vector<NamedSchedule> all = {
      {wordOf(Schedule::gpipe), 1, false, false, false, gpipe},
      {wordOf(Schedule::oneForwardOneBackward), 1, false, false, false,
       oneForwardOneBackward},
      {wordOf(Schedule::interleaved), 2, true, false, false, interleaved},
      {wordOf(Schedule::zbH1), 1, false, false, true, zbH1},
      {wordOf(Schedule::zbH2), 1, false, false, true, zbH2},
      {wordOf(Schedule::zbV), 2, false, true, true,
       [](const Work &work) {
         return givenOrder(work, zbV(ranksOf(work), work.microbatches));
       }},
      {wordOf(Schedule::dualPipeV), 2, false, true, true,
       [](const Work &work) {
         return givenOrder(work, dualPipeV(ranksOf(work), work.microbatches));
       }},
  };
  return all;
}

const NamedSchedule *findNamed(std::string_view name) {
  auto found = std::ranges::find(namedSchedules(), name, &NamedSchedule::name);
  return found == namedSchedules().end() ? nullptr : &*found;
}

int32_t ownVirtualStages(std::string_view name) {
  const NamedSchedule *named = findNamed(name);
  return named ? named->virtualStages : 1;
}

std::vector<int32_t> placeStages(int32_t ranks, int32_t virtualStages,
                                 bool vShaped) {
  std::vector<int32_t> rankOf;
  for (int32_t chunk = 0; chunk < virtualStages; ++chunk)
    for (int32_t rank = 0; rank < ranks; ++rank)
      rankOf.push_back(vShaped && chunk % 2 == 1 ? ranks - 1 - rank : rank);
  return rankOf;
}

Work workOf(const Wanted &wanted, std::vector<int32_t> rankOf) {
  Work work{wanted.microbatches, std::move(rankOf), {}, wanted.costs};
  size_t stages = work.rankOf.size();
  work.stagesOf.resize(static_cast<size_t>(wanted.ranks));
  for (size_t stage = 0; stage < stages; ++stage)
    work.stagesOf[static_cast<size_t>(work.rankOf[stage])].push_back(
        static_cast<int32_t>(stage));
  Costs &costs = work.costs;
  if (costs.forward.empty())
    costs = {std::vector<double>(stages, 1), std::vector<double>(stages, 1),
             std::vector<double>(stages, 1), std::vector<double>(stages, 0)};
  for (size_t stage = 0; stage + 1 < stages; ++stage)
    if (work.rankOf[stage] == work.rankOf[stage + 1])
      costs.transfer[stage] = 0;
  return work;
}

double mostAlive(const Table &table, double stash) {
  double most = 0;
  for (const std::vector<Action> &rank : table.ranks)
    most = std::max(most, keptBy(rank, stash, forEver).most);
  return most;
}

} // namespace meshwork::schedules
