#include "tools/meshwork/tune/Task.h"

#include "tools/meshwork/tune/Cost.h"

namespace meshwork::tune {

Task::Kind kindOf(const Frontier::Next &next) {
  switch (next.kind) {
  case Frontier::Next::body:
    return Task::ofBody;
  case Frontier::Next::splitSketch:
    return Task::ofSplit;
  case Frontier::Next::stages:
    return Task::ofStages;
  case Frontier::Next::sketch:
    return Task::ofSketch;
  case Frontier::Next::balanced:
    return Task::ofBalanced;
  case Frontier::Next::whole:
    break;
  }
  return Task::ofChoice;
}

std::string resultOf(const Task &task, const spec::Spec &spec,
                     const Facts &facts, const Models &models, uint32_t ranks) {
  if (task.kind == Task::ofBody)
    return toJson(measureBody(facts, models, spec, ranks));
  if (task.isSketch())
    return toJson(sketchOf(facts, models, task.choice, spec));
  return toJson(task.kind == Task::ofBalanced
                    ? costOfBalanced(models.whole(), spec)
                    : costOf(models.whole(), spec));
}

std::string contentOf(const Task &task, const std::string &settled,
                      const Facts &facts, uint32_t ranks) {
  std::string what = task.kind == Task::ofBody
                         ? "body among " + std::to_string(ranks)
                     : task.isSketch()               ? "sketch"
                     : task.kind == Task::ofBalanced ? "balanced"
                                                     : "spec";
  return what + "\n" + settled + "\n" + facts.text;
}

} // namespace meshwork::tune
