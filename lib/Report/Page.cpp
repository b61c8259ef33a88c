// The page: the files of page/ with the plan's data between them.
#include "lib/Explain/Explain.h"
#include "lib/Explain/Format.h"
#include "lib/Explain/Listing.h"
#include "lib/Explain/Summary.h"
#include "lib/Explain/Why.h"
#include "lib/Plan/Programs.h"
#include "lib/Report/Parts.h"
#include "meshwork/Plan/Frame.h"

namespace meshwork::report {
/// The page as page/ has it, cut where the data goes (PageText.cpp, which CMake
/// makes).
extern const char *const pageParts[];

namespace {
std::string textOf(const flatbuffers::String *text) {
  return text ? text->str() : "";
}

/// JSON that is also the text of an HTML element: no tag can end or begin in
/// it, whatever the names in a plan are.
std::string insideHtml(const Json &data) {
  std::string text,
      json = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (char c : json)
    switch (c) {
    case '<':
      text += "\\u003c";
      break;
    case '>':
      text += "\\u003e";
      break;
    case '&':
      text += "\\u0026";
      break;
    default:
      text += c;
    }
  return text;
}

/// explain's own words, up to what a reader scrolls through.
std::string explainText(const plan::Plan &plan) {
  constexpr size_t most = size_t{1} << 18;
  std::string text = explain::text(plan);
  if (text.size() <= most)
    return text;
  text.resize(text.rfind('\n', most) + 1);
  return text + "... and more: build/bin/meshwork explain tells all\n";
}
/// Names of the axes along which ranks run different programs.
Json programAxes(const plan::Plan &plan) {
  Json names = Json::array();
  for (uint32_t axis : plan::orEmpty(plan.program_axes()))
    names.push_back(textOf(plan.mesh()->Get(axis)->name()));
  return names;
}

/// Of meshes small enough to draw each rank; null of others.
Json programOfRank(const plan::Plan &plan) {
  constexpr uint64_t most = 256;
  uint64_t ranks = explain::numRanks(plan);
  if (ranks < 2 || ranks > most)
    return nullptr;
  Json numbers = Json::array();
  for (uint64_t rank = 0; rank < ranks; ++rank)
    numbers.push_back(plan::programOf(plan, rank));
  return numbers;
}
} // namespace

Json factsJson(const plan::Plan &plan) {
  return {{"model", textOf(plan.source_name())},
          {"producer", textOf(plan.producer())},
          {"device", plan::EnumNameDevice(plan.device())},
          {"compute", plan::EnumNameDType(plan.compute())},
          {"global_batch", plan.global_batch()},
          {"sequence", plan.sequence()},
          {"micro_batch", plan.micro_batch()},
          {"microbatches", plan.microbatches()},
          {"batch_axes", explain::axesText(plan, plan.batch_axes())},
          {"program_axes", programAxes(plan)},
          {"program_of_rank", programOfRank(plan)}};
}

std::string page(const plan::Plan &plan, const Run &run) {
  Json data;
  data["format_version"] = 1;
  data["name"] = run.name;
  data["facts"] = factsJson(plan);
  data["explain"] = explain::summaryJson(plan, run.measured);
  data["parameters"] = parametersJson(plan);
  data["memory"] = memoryJson(plan);
  data["schedule"] = scheduleJson(plan, run.measured);
  data["metrics"] = run.metrics ? metricsJson(*run.metrics) : Json();
  data["why"] = explain::Why(plan).tables();
  data["text"] = explainText(plan);
  return pageParts[0] + insideHtml(data) + "\n" + pageParts[1];
}

} // namespace meshwork::report
