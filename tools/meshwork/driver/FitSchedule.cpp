#include "tools/meshwork/driver/FitSchedule.h"

#include "lib/Cost/OfSpec.h"
#include "lib/Schedules/Csv.h"
#include "lib/Spec/ScheduleNames.h"
#include "lib/Spec/Words.h"
#include "mlir/IR/Diagnostics.h"
#include "tools/meshwork/driver/Trial.h"

#include <cmath>

using namespace mlir;

namespace meshwork::driver {
namespace {

/// Compilations to find how many microbatches may be kept; one more or less
/// gains little time.
constexpr int mostTrials = 6;

class Fit {
public:
  Fit(ModuleOp module, const spec::Spec &given) : module(module), spec(given) {}

  FailureOr<spec::Pipeline> run() {
    if (failed(findTimes()))
      return failure();
    if (cost::memoryLimit(spec) && failed(findKept()))
      return failure();
    return spec.pipeline;
  }

private:
  /// A table in which each stage has F, I and W, by the simplest rule: all F,
  /// then each I with its W.
  std::string splitTable() const {
    using schedules::Kind;
    auto ranks = static_cast<int32_t>(spec.stageRanks());
    auto stages = ranks * virtualStages(), m = microbatches();
    schedules::Table table{m, {}, {}};
    table.ranks.resize(ranks);
    for (int32_t stage = 0; stage < stages; ++stage)
      for (int32_t i = 0; i < m; ++i)
        table.ranks[stage % ranks].push_back({Kind::forward, stage, i});
    for (int32_t stage = stages; stage-- > 0;)
      for (int32_t i = 0; i < m; ++i)
        for (Kind kind : {Kind::inputGrad, Kind::weightGrad})
          table.ranks[stage % ranks].push_back({kind, stage, i});
    return schedules::csv(table);
  }

  LogicalResult findTimes() {
    FailureOr<Trial> trial = tryWith(splitTable(), 0);
    if (failed(trial))
      return failure();
    const schedules::Costs &costs = trial->costs;
    auto add = [&](double seconds) {
      spec.pipeline.times.push_back(std::llround(seconds * 1e12));
    };
    for (size_t stage = 0; stage < costs.forward.size(); ++stage) {
      add(costs.forward[stage]);
      add(costs.inputGrad[stage]);
      add(costs.weightGrad[stage]);
      add(costs.transfer[stage]);
    }
    return success();
  }

  /// The largest number of kept microbatches that fits, along the line between
  /// one that does and one that does not.
  LogicalResult findKept() {
    auto budget = static_cast<double>(cost::memoryLimit(spec)->bytes);
    FailureOr<Trial> above = tryWith(spec.pipeline.schedule, 0);
    if (failed(above))
      return failure();
    if (static_cast<double>(above->bytes) <= budget)
      return success();
    spec.pipeline.kept = virtualStages();
    FailureOr<Trial> fits = tryWith(spec.pipeline.schedule, spec.pipeline.kept);
    if (failed(fits))
      return failure();
    for (int i = 0; i < mostTrials && fits->bytes <= budget &&
                    above->kept - fits->kept > 1;
         ++i) {
      double share = (budget - static_cast<double>(fits->bytes)) /
                     static_cast<double>(above->bytes - fits->bytes);
      int32_t between =
          fits->kept + static_cast<int32_t>(share * (above->kept - fits->kept));
      between = std::clamp(between, fits->kept + 1, above->kept - 1);
      FailureOr<Trial> next = tryWith(spec.pipeline.schedule, between);
      if (failed(next))
        return failure();
      // A table may keep less than it is allowed.
      next->kept = between;
      bool isBelow = static_cast<double>(next->bytes) <= budget;
      (isBelow ? fits : above) = std::move(next);
      if (isBelow)
        spec.pipeline.kept = between;
    }
    return success();
  }

  FailureOr<Trial> tryWith(const std::string &schedule, uint32_t kept) {
    OwningOpRef<ModuleOp> copy(module.clone());
    spec::Spec trial = spec;
    trial.pipeline.schedule = schedule;
    trial.pipeline.kept = kept;
    return tryPhases(*copy, trial, "pipeline");
  }

  int32_t virtualStages() const {
    return std::max(1, static_cast<int32_t>(spec.pipeline.virtualStages));
  }
  int32_t microbatches() const {
    return static_cast<int32_t>(spec.microbatches());
  }

  ModuleOp module;
  spec::Spec spec;
};
} // namespace

LogicalResult fitSchedule(ModuleOp module, spec::Spec &spec) {
  if (spec.pipeline.schedule != spec::wordOf(spec::Schedule::best) ||
      spec.stageRanks() == 1)
    return success();
  FailureOr<spec::Pipeline> chosen = Fit(module, spec).run();
  if (failed(chosen))
    return failure();
  spec.pipeline = std::move(*chosen);
  return success();
}

} // namespace meshwork::driver
