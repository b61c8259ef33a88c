#include "lib/Schedules/Auto.h"
#include "lib/Schedules/Named.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace meshwork::schedules {
namespace {

/// The least idle first: by the end of the step, then by the longest span.
bool better(const Scheduled &a, const Scheduled &b) {
  return std::tie(a.makespan, a.span) < std::tie(b.makespan, b.span);
}

class Search {
public:
  explicit Search(const Wanted &wanted)
      : wanted(wanted), chunks(std::max(1, wanted.virtualStages)) {}

  std::optional<Scheduled> run() {
    tryNamed();
    return std::move(best);
  }

private:
  const Wanted &wanted;
  int32_t chunks;
  std::optional<Scheduled> best;

  void tryNamed() {
    for (const NamedSchedule &named : namedSchedules()) {
      if (named.virtualStages != 0 && named.virtualStages != chunks)
        continue;
      Work work =
          workOf(wanted, placeStages(wanted.ranks, chunks, named.vShaped));
      std::unique_ptr<Rule> rule = named.rule(work);
      consider(schedule(work, *rule));
    }
  }

  void consider(std::optional<Scheduled> found) {
    if (!found ||
        (wanted.memory > 0 && mostAlive(found->table) > wanted.memory))
      return;
    if (!best || better(*found, *best))
      best = std::move(found);
  }
};

} // namespace

std::optional<Scheduled> searchSchedule(const Wanted &wanted) {
  return Search(wanted).run();
}

} // namespace meshwork::schedules
