#include "lib/Explain/Pipeline.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/Explain/Format.h"
#include "lib/Explain/RankWork.h"
#include "lib/Explain/StepTime.h"
#include "lib/Plan/Views.h"
#include "lib/Schedules/Grid.h"
#include "meshwork/Text/Counted.h"
#include <set>

namespace meshwork::explain {
namespace {

schedules::Costs unitCosts(size_t stages) {
  std::vector<double> one(stages, 1), none(stages, 0);
  return {one, one, one, none};
}

/// "0-2, 6-8": those of a program's parameters.
std::string layersText(const plan::Program &program) {
  std::set<int32_t> layers;
  for (const plan::Parameter *parameter : plan::orEmpty(program.parameters()))
    if (parameter->layer() >= 0)
      layers.insert(parameter->layer());
  std::string text;
  for (int32_t layer : layers) {
    bool begins = !layers.contains(layer - 1),
         ends = !layers.contains(layer + 1);
    if (begins)
      absl::StrAppend(&text, text.empty() ? "" : ", ", layer);
    else if (ends)
      absl::StrAppend(&text, "-", layer);
  }
  return text;
}

/// Bytes of what as many microbatches keep at once.
uint64_t bytesOfCopies(const plan::Program &program) {
  uint64_t bytes = 0;
  for (const plan::Buffer *buffer : plan::orEmpty(program.buffers()))
    if (buffer->copies() > 1)
      bytes = saturatingAdd(bytes, buffer->size_bytes());
  return bytes;
}
} // namespace

std::optional<schedules::Table> stageTable(const plan::Plan &plan) {
  if (plan.programs()->size() < 2)
    return std::nullopt;
  return stageTable(workOfPlan(plan),
                    static_cast<int64_t>(plan.microbatches()));
}

std::optional<Pipeline> pipelineOf(const plan::Plan &plan) {
  std::optional<schedules::Table> table = stageTable(plan);
  if (!table)
    return std::nullopt;
  absl::StatusOr<schedules::Timeline> timeline =
      schedules::simulate(*table, unitCosts(table->rankOf.size()));
  if (!timeline.ok())
    return std::nullopt;
  return Pipeline{*std::move(table), *std::move(timeline)};
}

IdleTime idleTime(const plan::Plan &plan) {
  if (plan.programs()->size() < 2)
    return {0.0, 0.0};
  std::optional<Pipeline> pipeline = pipelineOf(plan);
  if (!pipeline)
    return {};
  return {pipeline->timeline.bubbleFraction, pipeline->timeline.idleFraction};
}

static std::string idleText(const schedules::Timeline &timeline) {
  return absl::StrFormat("the bubble is %.1f %% of the longest rank's time, "
                         "and all ranks together are idle for %.1f %%",
                         100 * timeline.bubbleFraction,
                         100 * timeline.idleFraction);
}

/// With the times that the plan's machine should take.
static std::string estimatedText(const plan::Plan &plan) {
  cost::MachineResult machine = machineOf(plan);
  if (!machine.machine)
    return ""; // The programs say why.
  StepTime step =
      estimateStep(plan, *machine.machine, cost::Ranks::threads).step;
  if (!step.timeline)
    return "";
  return absl::StrCat(
      "Estimated time on ", clean(machine.machine->name), ": ",
      timeText(step.seconds), " a step, ", timeText(step.timeline->makespan),
      " of it in the pipeline, where ", idleText(*step.timeline), "\n");
}

std::string pipelineText(const plan::Plan &plan) {
  std::optional<Pipeline> pipeline = pipelineOf(plan);
  if (!pipeline)
    return "";
  Table table(
      {"program", "layers", ">kept at once", ">arena", ">of it in copies"});
  for (uint32_t i = 0; i < plan.programs()->size(); ++i) {
    const plan::Program &program = *plan.programs()->Get(i);
    const schedules::Timeline::Work &work = pipeline->timeline.ranks[i];
    table.add({absl::StrCat(i), layersText(program),
               absl::StrCat(work.liveMicrobatches),
               bytesText(program.arena_bytes()),
               bytesText(bytesOfCopies(program))});
  }
  return absl::StrCat("\nPipeline of ",
                      counted(pipeline->table.rankOf.size(), "stage"), " on ",
                      counted(plan.programs()->size(), "rank"),
                      ": if F, I and W take one unit and transfers none, ",
                      idleText(pipeline->timeline), "\n",
                      schedules::grid(pipeline->table, pipeline->timeline),
                      table.render(), estimatedText(plan));
}

} // namespace meshwork::explain
