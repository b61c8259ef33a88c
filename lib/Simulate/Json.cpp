// README.md holds the meaning of each key.
#include "lib/Explain/Explain.h"
#include "lib/Simulate/Simulation.h"
#include <nlohmann/json.hpp>

namespace meshwork::simulate {
namespace {
using Json = nlohmann::ordered_json;
constexpr int formatVersion = 1;

Json orNull(const std::optional<double> &value) {
  return value ? Json(*value) : Json();
}

Json exposedOf(const explain::WholeStep &whole) {
  if (!whole.exposed)
    return {};
  Json exposed = Json::object();
  for (const auto &[axes, seconds] : *whole.exposed)
    exposed[axes] = seconds * 1e3;
  return exposed;
}

Json monthOf(const Month &month) {
  return {{"nodes", month.nodes},
          {"failures", month.failures},
          {"checkpoint_bytes", month.checkpointBytes},
          {"checkpoint_copy_s", month.run.copy},
          {"checkpoint_write_s", month.run.write},
          {"restart_s", month.run.restart + month.run.read},
          {"checkpoint_every", month.goodput.steps},
          {"goodput", month.goodput.share},
          {"steps", month.steps},
          {"tokens", month.tokens}};
}
} // namespace

std::string json(const plan::Plan &plan, const Simulation &simulation) {
  const explain::WholeStep &whole = simulation.whole;
  Json object{
      {"format_version", formatVersion},
      {"ranks", explain::numRanks(plan)},
      {"machine", whole.machine.name},
      {"step_ms", whole.estimate.step.seconds * 1e3},
      {"planned_step_ms", simulation.plannedSeconds > 0
                              ? Json(simulation.plannedSeconds * 1e3)
                              : Json()},
      {"tokens_per_second", whole.tokensPerSecond},
      {"mfu", whole.mfu > 0 ? Json(whole.mfu) : Json()},
      {"exposed_ms", exposedOf(whole)},
      {"bubble_fraction", orNull(whole.bubble)},
      {"idle_fraction", orNull(whole.idle)},
      {"month", simulation.month ? monthOf(*simulation.month) : Json()}};
  return object.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace meshwork::simulate
