#include "tools/meshwork/tune/Choice.h"

namespace meshwork::tune {
namespace {

/// Axes with several ranks, outermost first.
std::vector<std::string> axesOf(const Choice &choice) {
  std::vector<std::string> axes;
  for (AxisOfChoice axis : axesOfChoices)
    if (choice.*axis.size > 1)
      axes.push_back(std::string(axis.name) + "=" +
                     std::to_string(choice.*axis.size));
  return axes;
}

/// What ZeRO splits over, beside the innermost axis of the batch, which it does
/// by itself: ranks that share a sequence have the same weights, too.
std::string zeroAxes(const Choice &choice) {
  const char *batch = choice.fsdp > 1 ? R"("fsdp", )"
                      : choice.dp > 1 ? R"("dp", )"
                                      : "";
  return std::string("[") + batch + R"("cp"])";
}

std::string quoted(std::string_view word) {
  return '"' + std::string(word) + '"';
}

void addWord(Settings &settings, const char *key, std::string_view word) {
  if (!word.empty())
    settings.emplace_back(key, quoted(word));
}

void addNumber(Settings &settings, const char *key, uint64_t number) {
  settings.emplace_back(key, std::to_string(number));
}
} // namespace

Settings settingsOf(const Choice &choice) {
  std::string axes;
  for (const std::string &axis : axesOf(choice))
    axes += (axes.empty() ? "\"" : ", \"") + axis + "\"";
  Settings settings{{"mesh.axes", "[" + axes + "]"}};
  addNumber(settings, "batch.micro", choice.micro);
  if (choice.sequenceParallel)
    settings.emplace_back("shard.residual_sequence", R"(["tp"])");
  addWord(settings, "context.method", choice.method);
  addWord(settings, "context.layout", choice.layout);
  addWord(settings, "experts.exchange", choice.exchange);
  addNumber(settings, "zero.stage", choice.zeroStage);
  if (choice.zeroStage > 0 && choice.cp > 1)
    settings.emplace_back("zero.axes", zeroAxes(choice));
  addWord(settings, "zero.gathered", choice.gathered);
  addWord(settings, "zero.reduce", choice.reduce);
  if (choice.offloads)
    settings.emplace_back("offload.optimizer", "true");
  addWord(settings, "pipeline.schedule", choice.schedule);
  if (choice.virtualStages > 0)
    addNumber(settings, "pipeline.virtual_stages", choice.virtualStages);
  addWord(settings, "recompute.policy", choice.recompute);
  return settings;
}

std::string nameOf(const Choice &choice) {
  std::string name;
  for (const std::string &axis : axesOf(choice))
    name += (name.empty() ? "" : " ") + axis;
  if (name.empty())
    name = "one rank";
  if (choice.sequenceParallel)
    name += " sp";
  name += ", ZeRO-" + std::to_string(choice.zeroStage);
  for (std::string_view word : {choice.gathered, choice.reduce})
    if (!word.empty())
      name += " " + std::string(word);
  for (std::string_view word :
       {choice.method, choice.layout, choice.exchange, choice.schedule})
    if (!word.empty())
      name += ", " + std::string(word);
  if (choice.virtualStages > 0)
    name += " x" + std::to_string(choice.virtualStages);
  name += ", micro " + std::to_string(choice.micro);
  name += ", " + std::string(choice.recompute);
  return name + (choice.offloads ? ", states on the host" : "");
}

} // namespace meshwork::tune
