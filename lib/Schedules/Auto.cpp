// Searches by trying: a fixed number of schedules, so equal work gives equal
// tables on any machine.
#include "lib/Schedules/Auto.h"
#include "lib/Schedules/Named.h"
#include "lib/Schedules/Tastes.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace meshwork::schedules {
namespace {

/// When the step ends, how long the longest rank is at work, and a little of
/// how long all are: that leads a search on where one rank is not the last.
double scoreOf(const Scheduled &found) {
  double all = 0;
  for (size_t rank = 0; rank < found.end.size(); ++rank)
    all += found.end[rank] - found.begin[rank];
  return found.makespan + found.span +
         0.05 * all / static_cast<double>(found.end.size());
}

class Search {
public:
  explicit Search(const Wanted &wanted)
      : wanted(wanted), chunks(std::max(1, wanted.virtualStages)),
        memory(wanted.memory > 0 ? wanted.memory : forEver) {
    for (bool vShaped : {true, false})
      if (vShaped || chunks > 1)
        works.push_back(
            workOf(wanted, placeStages(wanted.ranks, chunks, vShaped)));
  }

  std::optional<Scheduled> run() {
    tryNamed();
    Tastes tastes(works[0], memory, wanted.stash);
    auto places = static_cast<int32_t>(works.size());
    int32_t trials = numTrials();
    for (int32_t i = 0; i < trials; ++i)
      if (i < trials / 2 || model.empty())
        tryOut(tastes.any(), static_cast<size_t>(tastes.below(places)));
      else
        tryOut(tastes.changed(model), modelPlace);
    return std::move(best);
  }

private:
  const Wanted &wanted;
  int32_t chunks;
  double memory;
  /// The stages placed in each way that is tried.
  std::vector<Work> works;
  std::optional<Scheduled> best;
  /// The end of the best named schedule.
  double lastEnd = forEver;
  /// What the best of the search was made from.
  std::vector<Taste> model;
  size_t modelPlace = 0;
  double modelScore = forEver;

  /// A second's worth, about.
  int32_t numTrials() const {
    double actions = 3.0 * wanted.microbatches * wanted.ranks * chunks;
    return static_cast<int32_t>(std::clamp(3e6 / actions, 2.0, 4000.0));
  }

  bool fits(const Scheduled &found) const {
    return mostAlive(found.table, wanted.stash) <= memory + 1e-9;
  }

  void tryNamed() {
    for (const NamedSchedule &named : namedSchedules()) {
      if (!takes(named, chunks))
        continue;
      Work work =
          workOf(wanted, placeStages(wanted.ranks, chunks, named.vShaped));
      std::unique_ptr<Rule> rule = named.rule(work);
      std::optional<Scheduled> found = schedule(work, *rule);
      if (found && fits(*found) &&
          (!best || std::tie(found->makespan, found->span) <
                        std::tie(best->makespan, best->span)))
        best = std::move(found);
    }
    if (best)
      lastEnd = best->makespan;
  }

  /// What the search finds must not end later than a named schedule.
  void tryOut(std::vector<Taste> tastes, size_t place) {
    std::unique_ptr<Rule> rule = greedyRule(works[place], tastes);
    std::optional<Scheduled> found = schedule(works[place], *rule);
    if (!found || !fits(*found))
      return;
    double score = scoreOf(*found);
    if (score <= modelScore) {
      modelScore = score;
      model = std::move(tastes);
      modelPlace = place;
    }
    if (found->makespan <= lastEnd * (1 + 1e-9) &&
        (!best || score < scoreOf(*best)))
      best = std::move(found);
  }
};

} // namespace

std::optional<Scheduled> searchSchedule(const Wanted &wanted) {
  return Search(wanted).run();
}

} // namespace meshwork::schedules
