#include "lib/Cost/OfSpec.h"
#include "lib/Schedules/Csv.h"
#include "lib/Spec/ScheduleNames.h"
#include "lib/Spec/Words.h"
#include "tools/meshwork/driver/search/Autos.h"
#include "tools/meshwork/driver/search/Line.h"

#include <cmath>

using namespace mlir;

namespace meshwork::driver {
namespace {

int32_t virtualStages(const spec::Spec &spec) {
  return std::max(1, static_cast<int32_t>(spec.pipeline.virtualStages));
}

/// A table in which each stage has F, I and W, by the simplest rule: all F,
/// then each I with its W.
std::string splitTable(const spec::Spec &spec) {
  using schedules::Kind;
  auto ranks = static_cast<int32_t>(spec.stageRanks()),
       m = static_cast<int32_t>(spec.microbatches());
  int32_t stages = ranks * virtualStages(spec);
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

/// As the spec has it: picoseconds of F, I, W and the transfer of each stage.
std::vector<int64_t> timesOf(const schedules::Costs &costs) {
  std::vector<int64_t> times;
  auto add = [&](double seconds) {
    times.push_back(std::llround(seconds * 1e12));
  };
  for (size_t stage = 0; stage < costs.forward.size(); ++stage) {
    add(costs.forward[stage]);
    add(costs.inputGrad[stage]);
    add(costs.weightGrad[stage]);
    add(costs.transfer[stage]);
  }
  return times;
}

/// How many microbatches a rank may keep; 0 where any number fits, or none can
/// be planned with.
FailureOr<uint32_t> keptWithin(uint64_t limit, const Copies &copies,
                               const spec::Spec &spec) {
  auto compile = [&](int64_t kept) {
    spec::Spec with = spec;
    with.pipeline.kept = static_cast<uint32_t>(kept);
    return copies.compile(with);
  };
  Outcome free = compile(0);
  if (failed(free))
    return failure();
  if (!*free || fits(*free, limit))
    return 0;
  // One microbatch more or less gains little time.
  Line line{{virtualStages(spec)}, Tried<int64_t>{(*free)->kept, *free}, 6};
  FailureOr<Tried<int64_t>> most = mostThatFits(line, limit, compile);
  if (failed(most))
    return failure();
  return static_cast<uint32_t>(most->way);
}
} // namespace

LogicalResult chooseSchedule(const AtChoice &at) {
  spec::Spec &spec = at.spec;
  if (spec.pipeline.schedule != spec::wordOf(spec::Schedule::best) ||
      spec.stageRanks() == 1)
    return success();
  Copies copies{at.module, "pipeline"};
  spec::Spec split = spec;
  split.pipeline.schedule = splitTable(spec);
  split.pipeline.kept = 0;
  Outcome timed = copies.compile(split);
  if (failed(timed))
    return failure();
  if (*timed)
    spec.pipeline.times = timesOf((*timed)->costs);
  if (std::optional<cost::MemoryLimit> limit = cost::memoryLimit(spec)) {
    FailureOr<uint32_t> kept = keptWithin(limit->bytes, copies, spec);
    if (failed(kept))
      return failure();
    spec.pipeline.kept = *kept;
  }
  if (spec.pipeline.kept > 0)
    at.said.add([&](auto &os) {
      os << "schedule: auto; microbatches of a virtual stage that a rank may "
            "keep: "
         << spec.pipeline.kept;
    });
  return success();
}

} // namespace meshwork::driver
