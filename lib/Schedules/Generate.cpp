#include "lib/Schedules/Generate.h"
#include "lib/Schedules/Auto.h"
#include "lib/Schedules/Named.h"
#include "lib/Spec/ScheduleNames.h"

#include "absl/strings/str_cat.h"
#include "meshwork/Text/Counted.h"
#include "meshwork/Text/Escape.h"

#include <algorithm>
#include <cmath>

namespace meshwork::schedules {
namespace {

/// The most F of a table, so that a wrong number is an error and not a machine
/// out of memory.
constexpr int64_t maxForwards = int64_t{1} << 22;

absl::Status invalid(const std::string &message) {
  return absl::InvalidArgumentError(message);
}

absl::Status checkSizes(const Wanted &wanted, int32_t virtualStages) {
  if (wanted.ranks < 1 || wanted.ranks > 16384)
    return invalid(absl::StrCat("found ",
                                counted(wanted.ranks, "pipeline stage"),
                                ", expected 1 to 16384"));
  if (wanted.microbatches < 1)
    return invalid(absl::StrCat("found ",
                                counted(wanted.microbatches, "microbatch"),
                                ", expected at least 1"));
  int64_t stages = int64_t{wanted.ranks} * virtualStages;
  if (virtualStages > 1024 || stages * wanted.microbatches > maxForwards)
    return invalid(absl::StrCat(
        "found ", counted(stages, "virtual stage"), " and ",
        counted(wanted.microbatches, "microbatch"), ", expected at most ",
        maxForwards, " forward actions in all"));
  return absl::OkStatus();
}

absl::Status checkVirtualStages(const Wanted &wanted,
                                const NamedSchedule *named) {
  int32_t found = wanted.virtualStages;
  if (found < 0 || found > 1024)
    return invalid(absl::StrCat("found ", counted(found, "virtual stage"),
                                ", expected 1 to 1024"));
  if (found == 0 || !named || takes(*named, found))
    return absl::OkStatus();
  return invalid(absl::StrCat(wanted.name, ": found ",
                              counted(found, "virtual stage"),
                              " a rank, expected ", named->virtualStages,
                              "; interleaved-1f1b takes any number"));
}

int32_t chunksOf(const Wanted &wanted) {
  return wanted.virtualStages > 0 ? wanted.virtualStages
                                  : ownVirtualStages(wanted.name);
}

absl::Status checkCosts(const Costs &costs, size_t stages) {
  for (const std::vector<double> *times :
       {&costs.forward, &costs.inputGrad, &costs.weightGrad, &costs.transfer}) {
    if (times->size() != stages && !costs.forward.empty())
      return invalid(absl::StrCat("found costs of ",
                                  counted(times->size(), "virtual stage"),
                                  ", expected ", stages));
    for (double time : *times)
      if (!(time >= 0) || !std::isfinite(time))
        return invalid("found a cost that is negative or no number, expected "
                       "times of 0 or more");
  }
  return absl::OkStatus();
}

absl::Status tooMuchMemory(const Wanted &wanted, double kept) {
  auto alive = static_cast<int64_t>(std::ceil(kept));
  return invalid(absl::StrCat(wanted.name, " keeps ",
                              counted(alive, "microbatch"),
                              " (counted in virtual stages) at once, more "
                              "than the memory limit ",
                              static_cast<int64_t>(wanted.memory), "; allow ",
                              alive, ", or take auto"));
}

absl::StatusOr<Table> generateNamed(const Wanted &wanted,
                                    const NamedSchedule &named) {
  int32_t chunks = chunksOf(wanted);
  Work work = workOf(wanted, placeStages(wanted.ranks, chunks, named.vShaped));
  std::unique_ptr<Rule> rule = named.rule(work);
  std::optional<Scheduled> result = schedule(work, *rule);
  if (!result)
    return absl::InternalError(absl::StrCat(wanted.name, " waits for ever"));
  if (double alive = mostAlive(result->table, wanted.stash);
      wanted.memory > 0 && alive > wanted.memory)
    return tooMuchMemory(wanted, alive);
  return std::move(result->table);
}

absl::StatusOr<Table> generateBest(const Wanted &wanted) {
  if (std::optional<Scheduled> best = searchSchedule(wanted))
    return std::move(best->table);
  int32_t least = chunksOf(wanted);
  return invalid(absl::StrCat(
      "auto: no schedule keeps only ", static_cast<int64_t>(wanted.memory),
      " microbatches (counted in virtual stages) at once, "
      "expected a memory limit of at least ",
      least));
}

/// `named` is null of `auto`.
absl::Status check(const Wanted &wanted, const NamedSchedule *named) {
  if (absl::Status status = checkVirtualStages(wanted, named); !status.ok())
    return status;
  int32_t chunks = chunksOf(wanted);
  if (absl::Status status = checkSizes(wanted, chunks); !status.ok())
    return status;
  if (!(wanted.stash >= 0 && wanted.stash <= 1))
    return invalid("found a stash below 0 or above 1, expected the part of the "
                   "activations that W needs");
  if (!(wanted.memory >= 0))
    return invalid("found a negative memory limit, expected 0 (none) or more");
  return checkCosts(wanted.costs, static_cast<size_t>(wanted.ranks) *
                                      static_cast<size_t>(chunks));
}

} // namespace

absl::StatusOr<Table> generate(const Wanted &wanted) {
  bool best = wanted.name == wordOf(spec::Schedule::best);
  const NamedSchedule *named = findNamed(wanted.name);
  if (!best && !named)
    return invalid(
        absl::StrCat("found the schedule ", quote(wanted.name), ", expected ",
                     spec::listOfWords<spec::Schedule>(), ", or a CSV file"));
  if (absl::Status status = check(wanted, named); !status.ok())
    return status;
  return best ? generateBest(wanted) : generateNamed(wanted, *named);
}

} // namespace meshwork::schedules
