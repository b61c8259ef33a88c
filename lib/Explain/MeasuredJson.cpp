#include "lib/Explain/MeasuredJson.h"

namespace meshwork::explain {
namespace {
using Json = nlohmann::ordered_json;

void addTimes(Json &to, const Measured::Times &times) {
  std::optional<double> ratio = ratioOf(times);
  to["planned_ms"] = 1e3 * times.planned;
  to["best_ms"] = 1e3 * times.best;
  to["median_ms"] = 1e3 * times.median;
  to["ratio"] = ratio ? Json(*ratio) : Json();
}

Json timesAnd(const Measured::Times &times, double simulated) {
  Json object;
  addTimes(object, times);
  object["simulated_ms"] = 1e3 * simulated;
  return object;
}

Json lists(const Measured &measured) {
  Json all = Json::array();
  for (const Measured::OfList &list : measured.lists) {
    Json row{
        {"list", list.name}, {"program", list.program}, {"runs", list.runs}};
    addTimes(row, list.times);
    row["wait_ms"] = 1e3 * list.wait;
    all.push_back(std::move(row));
  }
  return all;
}

Json moves(const Measured &measured) {
  Json all = Json::array();
  for (const Measured::OfMoves &one : measured.moves) {
    Json row{{"kind", one.kind},
             {"axis", one.axis},
             {"phase", one.phase},
             {"program", one.program},
             {"count", one.count}};
    addTimes(row, one.times);
    row["wait_ms"] = 1e3 * one.wait;
    row["hidden_fraction"] = one.isHidden;
    all.push_back(std::move(row));
  }
  return all;
}
} // namespace

Json measuredJson(const Measured &measured) {
  Json object{{"steps", measured.steps},
              {"first_left_out", measured.skippedFirst},
              {"step", timesAnd(measured.step, measured.simulatedStep)}};
  Json &pipeline = object["pipeline"] = Json();
  if (const auto &of = measured.pipeline) {
    pipeline = timesAnd(of->span, of->simulatedSpan);
    pipeline["bubble_fraction"] = {{"planned", of->plannedBubble},
                                   {"measured", of->measuredBubble},
                                   {"simulated", of->simulatedBubble}};
  }
  object["lists"] = lists(measured);
  object["moves"] = moves(measured);
  return object;
}

} // namespace meshwork::explain
