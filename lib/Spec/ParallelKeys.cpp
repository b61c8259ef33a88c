// [zero], [context] and [pipeline].
#include <algorithm>

#include "lib/Spec/KeyKinds.h"
#include "lib/Spec/Keys.h"
#include "lib/Spec/ScheduleNames.h"
#include "lib/Spec/TomlFile.h"

namespace meshwork::spec {
namespace {

bool isSchedule(const Value &value) {
  return value.kind == Value::Kind::string &&
         (value.text.ends_with(".csv") ||
          value.text.find('\n') != std::string::npos || // what a file held
          readWord<Schedule>(value.text));
}

/// Of a stage. A model has fewer, and sums of them stay far from overflow.
bool isLayerCount(const Value &value) {
  return value.kind == Value::Kind::integer && value.integer >= 1 &&
         value.integer <= INT32_MAX;
}

bool isLayerSplit(const Value &value) {
  if (value.kind == Value::Kind::string)
    return value.text == "auto";
  return value.kind == Value::Kind::array && !value.items.empty() &&
         std::all_of(value.items.begin(), value.items.end(), isLayerCount);
}

std::vector<Mistake> layerMistakes(const Value &value) {
  std::vector<Mistake> mistakes;
  if (value.kind == Value::Kind::array)
    for (size_t stage = 0; stage < value.items.size(); ++stage)
      if (const Value &item = value.items[stage]; !isLayerCount(item))
        mistakes.push_back(
            {item.where, "stage " + std::to_string(stage) + " has " +
                             item.found() +
                             " layers, expected a whole number from 1 on: each "
                             "stage needs at least one layer"});
  return mistakes;
}

Key zeroStage() {
  Key key{"zero", "stage", "a whole number from 0 to 3", {}, {}, false, {}};
  key.read = [](const Value &value, Spec &spec) {
    if (value.kind != Value::Kind::integer || value.integer < 0 ||
        value.integer > 3)
      return false;
    spec.zero.stage = static_cast<uint32_t>(value.integer);
    return true;
  };
  key.print = [](const Spec &spec) { return std::to_string(spec.zero.stage); };
  return key;
}

Key zeroAxes() {
  Key key{"zero", "axes", "an array of mesh axes", {}, {}, false, {}};
  key.read = [](const Value &value, Spec &spec) {
    std::optional<Strings> axes = stringsOf(value);
    if (axes)
      spec.zero.axes = *axes;
    return axes.has_value();
  };
  key.print = [](const Spec &spec) -> std::optional<std::string> {
    if (spec.zero.stage == 0)
      return std::nullopt;
    return tomlStrings(spec.zero.axes);
  };
  return key;
}

std::vector<Mistake> noAxes(const Value &value) {
  if (value.kind != Value::Kind::array || !value.items.empty())
    return {};
  return {{value.where, "names no axis, expected some of zero.axes; for "
                        "weights that stay whole until the backward pass write "
                        "\"keep\""}};
}

Key zeroGathered() {
  Key key = word<Gathered>("zero", "gathered", [](Spec &s) -> Gathered & {
    return s.zero.gathered;
  });
  key.expected += ", or an array of axes of zero.axes";
  key.mistakes = noAxes;
  key.read = [word = key.read](const Value &value, Spec &spec) {
    std::optional<Strings> axes = stringsOf(value);
    if (!axes || axes->empty())
      return word(value, spec);
    spec.zero.inner = *axes;
    return true;
  };
  key.print = [](const Spec &s) -> std::optional<std::string> {
    if (s.zero.stage != 3)
      return std::nullopt;
    if (!s.zero.inner.empty())
      return tomlStrings(s.zero.inner);
    return tomlString(wordOf(s.zero.gathered));
  };
  return key;
}

Key zeroReduce() {
  Key key = word<Reduce>("zero", "reduce",
                         [](Spec &s) -> Reduce & { return s.zero.reduce; });
  key.print = [](const Spec &s) -> std::optional<std::string> {
    if (s.zero.stage < 2)
      return std::nullopt;
    return tomlString(wordOf(s.zero.reduce));
  };
  return key;
}

Key zeroWeights() {
  Key key = word<WeightType>("zero", "weights", [](Spec &s) -> WeightType & {
    return s.zero.weights;
  });
  key.print = [](const Spec &s) -> std::optional<std::string> {
    if (s.zero.stage != 3)
      return std::nullopt;
    return tomlString(wordOf(s.zero.weights));
  };
  return key;
}

Key zeroGradients() {
  Key key =
      word<GradientType>("zero", "gradients", [](Spec &s) -> GradientType & {
        return s.zero.gradients;
      });
  key.print = [](const Spec &s) -> std::optional<std::string> {
    if (s.zero.stage == 0)
      return std::nullopt;
    return tomlString(wordOf(s.zero.gradients));
  };
  return key;
}

Key gradientBlock() {
  return wholeNumber(
      "zero", "gradient_block", 16, 65536,
      [](Spec &s, uint32_t value) { s.zero.gradientBlock = value; },
      [](const Spec &s) -> std::optional<uint32_t> {
        if (s.zero.gradients == GradientType::precision)
          return std::nullopt;
        return s.zero.gradientBlock;
      });
}

Key gradientError() {
  return onOrOff(
      "zero", "gradient_error",
      [](Spec &s, double on) { s.zero.gradientError = on != 0; },
      [](const Spec &s) -> std::optional<double> {
        return s.zero.gradientError ? std::optional<double>(1) : std::nullopt;
      });
}

Key pipelineSchedule() {
  std::string names;
  for (const Word<Schedule> &word : words<Schedule>())
    names += (names.empty() ? "" : ", ") + tomlString(word.text);
  Key key{"pipeline", "schedule", names + " or a .csv file", {}, {}, false, {}};
  for (const Word<Schedule> &word : words<Schedule>())
    key.choices.emplace_back(word.text);
  key.read = [](const Value &value, Spec &spec) {
    if (isSchedule(value))
      spec.pipeline.schedule = value.text;
    return isSchedule(value);
  };
  key.print = [](const Spec &spec) -> std::optional<std::string> {
    if (spec.pipeline.schedule == Spec().pipeline.schedule)
      return std::nullopt;
    return tomlText(spec.pipeline.schedule);
  };
  return key;
}

Key virtualStages() {
  Key key{"pipeline",
          "virtual_stages",
          "a whole number from 1 to 1024",
          {},
          {},
          false,
          {}};
  key.read = [](const Value &value, Spec &spec) {
    bool isLegal = value.kind == Value::Kind::integer && value.integer >= 1 &&
                   value.integer <= 1024;
    if (isLegal)
      spec.pipeline.virtualStages = static_cast<uint32_t>(value.integer);
    return isLegal;
  };
  key.print = [](const Spec &spec) -> std::optional<std::string> {
    if (spec.pipeline.virtualStages == 0)
      return std::nullopt;
    return std::to_string(spec.pipeline.virtualStages);
  };
  return key;
}

Key layersOfStages() {
  Key key{"pipeline",
          "layers",
          R"("auto", or the number of layers of each stage like [3, 2])",
          {},
          {},
          false,
          {}};
  key.mistakes = layerMistakes;
  key.read = [](const Value &value, Spec &spec) {
    if (!isLayerSplit(value))
      return false;
    for (const Value &one : value.items)
      spec.pipeline.layers.push_back(one.integer);
    return true;
  };
  key.print = [](const Spec &spec) -> std::optional<std::string> {
    if (spec.pipeline.layers.empty())
      return std::nullopt;
    std::string text = "[";
    for (int64_t count : spec.pipeline.layers)
      text += (text.size() > 1 ? ", " : "") + std::to_string(count);
    return text + "]";
  };
  return key;
}

/// `{ cp = "ring", up = "ulysses" }`. One method at most stands beside
/// "ulysses".
bool readContextTable(const Value &table, Spec &spec) {
  spec.context = Context::ulysses;
  for (size_t i = 0; i < table.items.size(); ++i) {
    std::optional<Context> method = readWord<Context>(table.items[i].text);
    if (table.items[i].kind != Value::Kind::string || !method ||
        method == Context::byCost)
      return false;
    if (*method != Context::ulysses) {
      if (spec.context != Context::ulysses && spec.context != *method)
        return false;
      spec.context = *method;
    }
    spec.contextOfAxis.push_back({table.keys[i], *method});
  }
  return !table.items.empty();
}

std::string tomlContext(const Spec &spec) {
  if (spec.contextOfAxis.empty())
    return tomlString(wordOf(spec.context));
  std::string text;
  for (const AxisContext &one : spec.contextOfAxis)
    text += (text.empty() ? "{ " : ", ") + one.axis + " = " +
            tomlString(wordOf(one.method));
  return text + " }";
}

Key contextMethod() {
  Key key = word<Context>("context", "method",
                          [](Spec &s) -> Context & { return s.context; });
  key.expected += ", or a table with \"gathered\" or \"ring\" for some axes "
                  "and \"ulysses\" for others";
  key.read = [word = key.read](const Value &value, Spec &spec) {
    return value.kind == Value::Kind::table ? readContextTable(value, spec)
                                            : word(value, spec);
  };
  key.print = [](const Spec &s) -> std::optional<std::string> {
    if (!s.splits("sequence"))
      return std::nullopt;
    return tomlContext(s);
  };
  return key;
}

} // namespace

void addParallelKeys(std::vector<Key> &keys) {
  keys.push_back(zeroStage());
  keys.push_back(zeroAxes());
  keys.push_back(zeroGathered());
  keys.push_back(zeroReduce());
  keys.push_back(zeroWeights());
  keys.push_back(zeroGradients());
  keys.push_back(gradientBlock());
  keys.push_back(gradientError());
  keys.push_back(contextMethod());
  Key layout = word<layout::DimLayout>(
      "context", "layout",
      [](Spec &s) -> layout::DimLayout & { return s.sequenceLayout; });
  layout.print = [](const Spec &s) -> std::optional<std::string> {
    if (!s.splits("sequence"))
      return std::nullopt;
    return tomlString(wordOf(s.sequenceLayout));
  };
  keys.push_back(layout);
  keys.push_back(pipelineSchedule());
  keys.push_back(virtualStages());
  keys.push_back(layersOfStages());
}

} // namespace meshwork::spec
