#include "lib/Spec/Keys.h"

#include <algorithm>

#include "lib/Spec/KeyKinds.h"
#include "lib/Spec/ScheduleNames.h"
#include "lib/Spec/Size.h"

namespace meshwork::spec {
namespace {

std::vector<Mistake> axisMistakes(const Value &value) {
  std::vector<Mistake> mistakes;
  if (value.kind != Value::Kind::array)
    return mistakes;
  for (const Value &item : value.items) {
    std::string expected = R"(a string like "dp=2")";
    if (item.kind != Value::Kind::string || !parseAxis(item.text, expected))
      mistakes.push_back(
          {item.where, "found " + item.found() + ", expected " + expected});
  }
  return mistakes;
}

Key meshAxes() {
  Key key{"mesh",
          "axes",
          R"(an array of axes like ["dp=2"], sizes from 1 to 1048576)",
          {},
          {},
          true,
          {}};
  key.read = [](const Value &value, Spec &spec) {
    std::optional<Strings> texts = stringsOf(value);
    if (!texts)
      return false;
    spec.mesh.clear();
    std::string expected;
    for (const std::string &text : *texts) {
      std::optional<Axis> axis = parseAxis(text, expected);
      if (!axis)
        return false;
      spec.mesh.push_back(*axis);
    }
    return true;
  };
  key.mistakes = axisMistakes;
  key.print = [](const Spec &spec) {
    Strings texts;
    for (const Axis &axis : spec.mesh)
      texts.push_back(axis.name + "=" + std::to_string(axis.size));
    return tomlStrings(texts);
  };
  return key;
}

Key shardRule(const std::string &dim) {
  Key key{"shard", dim, R"(an array of mesh axes like ["dp"])", {}, {},
          false,   {}};
  key.read = [dim](const Value &value, Spec &spec) {
    std::optional<Strings> axes = stringsOf(value);
    if (!axes)
      return false;
    spec.shard.push_back({dim, *axes});
    return true;
  };
  key.print = [dim](const Spec &spec) -> std::optional<std::string> {
    for (const ShardRule &rule : spec.shard)
      if (rule.dim == dim)
        return tomlStrings(rule.axes);
    return std::nullopt;
  };
  return key;
}

std::string tomlPins(const std::vector<TensorPin> &pins) {
  std::string text = "[";
  for (const TensorPin &pin : pins)
    text += (text.size() > 1 ? ", " : "") +
            ("{name = " + tomlString(pin.name)) +
            ", dims = " + tomlString(pin.dims) + "}";
  return text + "]";
}

bool isSchedule(const Value &value) {
  return value.kind == Value::Kind::string &&
         (value.text.ends_with(".csv") ||
          value.text.find('\n') != std::string::npos || // what a file held
          readWord<Schedule>(value.text));
}

bool isLayerSplit(const Value &value) {
  if (value.kind == Value::Kind::string)
    return value.text == "auto";
  return value.kind == Value::Kind::array && !value.items.empty() &&
         std::all_of(value.items.begin(), value.items.end(),
                     [](const Value &v) {
                       return v.kind == Value::Kind::integer && v.integer > 0;
                     });
}

/// Of one table of [[shard.tensor]].
void addPinMistakes(const Value &pin, std::vector<Mistake> &mistakes) {
  const Strings known = {"dims", "name"};
  if (pin.kind != Value::Kind::table) {
    mistakes.push_back({pin.where, "found " + pin.found() +
                                       ", expected a table of name and dims"});
    return;
  }
  for (size_t i = 0; i < pin.keys.size(); ++i) {
    const Value &value = pin.items[i];
    if (std::find(known.begin(), known.end(), pin.keys[i]) == known.end())
      mistakes.push_back({value.where, "found key " + quote(pin.keys[i]) +
                                           ", expected name and dims" +
                                           suggestion(pin.keys[i], known)});
    else if (value.kind != Value::Kind::string)
      mistakes.push_back(
          {value.where,
           pin.keys[i] + ": found " + value.found() + ", expected a string"});
  }
  for (const std::string &key : known)
    if (std::find(pin.keys.begin(), pin.keys.end(), key) == pin.keys.end())
      mistakes.push_back({pin.where, "has no " + key});
}

std::vector<Mistake> pinMistakes(const Value &value) {
  std::vector<Mistake> mistakes;
  if (value.kind == Value::Kind::array)
    for (const Value &pin : value.items)
      addPinMistakes(pin, mistakes);
  return mistakes;
}

Key tensorPins() {
  Key key{"shard", "tensor", "tables of a name and dims, both strings", {}, {},
          false,   {}};
  key.mistakes = pinMistakes;
  key.read = [](const Value &value, Spec &spec) {
    if (value.kind != Value::Kind::array || !pinMistakes(value).empty())
      return false;
    for (const Value &pin : value.items) // keys are sorted: dims, name
      spec.pins.push_back(
          {pin.items[1].text, pin.items[0].text, pin.where.text()});
    return true;
  };
  key.print = [](const Spec &spec) -> std::optional<std::string> {
    if (spec.pins.empty())
      return std::nullopt;
    return tomlPins(spec.pins);
  };
  return key;
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

Key bucket() {
  Key key{"overlap", "bucket", R"(a size from 1 KiB to 1 GiB, like "25 MiB")",
          {},        {},       false,
          {}};
  key.read = [](const Value &value, Spec &spec) {
    std::optional<uint64_t> bytes;
    if (value.kind == Value::Kind::string)
      bytes = parseSize(value.text);
    if (!bytes || *bytes < 1024 || *bytes > uint64_t{1} << 30)
      return false;
    spec.overlap.bucketBytes = *bytes;
    return true;
  };
  key.print = [](const Spec &spec) {
    return tomlString(std::to_string(spec.overlap.bucketBytes) + " B");
  };
  return key;
}

/// Which names and files there are, lib/Cost knows.
Key machine() {
  Key key{
      "target",
      "machine",
      R"(the name of a machine like "h100x8", or the path of a machine file)",
      {},
      {},
      false,
      {}};
  key.read = [](const Value &value, Spec &spec) {
    if (value.kind != Value::Kind::string || value.text.empty())
      return false;
    spec.machine = value.text;
    return true;
  };
  key.print = [](const Spec &spec) -> std::optional<std::string> {
    if (spec.machine.empty())
      return std::nullopt;
    return tomlText(spec.machine);
  };
  return key;
}

Key memoryPerRank() {
  Key key{
      "expect",
      "memory_per_rank",
      R"(a size with its unit like "20 GiB" (B, kB, MB, GB, TB, KiB, MiB, GiB, TiB))",
      {},
      {},
      false,
      {}};
  key.read = [](const Value &value, Spec &spec) {
    if (value.kind != Value::Kind::string)
      return false;
    spec.memoryPerRankBytes = parseSize(value.text);
    return spec.memoryPerRankBytes.has_value();
  };
  key.print = [](const Spec &spec) -> std::optional<std::string> {
    if (!spec.memoryPerRankBytes)
      return std::nullopt;
    return tomlString(std::to_string(*spec.memoryPerRankBytes) + " B");
  };
  return key;
}

/// The text of each; that it is a budget is checked where errors can say more
/// than that it is not.
Key collectiveBudgets() {
  Key key{"expect",
          "collectives",
          R"(an array of budgets like ["all_gather(tp) <= 2 per layer"])",
          {},
          {},
          false,
          {}};
  key.read = [](const Value &value, Spec &spec) {
    std::optional<Strings> texts = stringsOf(value);
    if (!texts)
      return false;
    for (size_t i = 0; i < texts->size(); ++i) {
      CollectiveBudget budget;
      budget.text = (*texts)[i];
      budget.place = value.items[i].where.text();
      spec.collectives.push_back(budget);
    }
    return true;
  };
  key.print = [](const Spec &spec) -> std::optional<std::string> {
    Strings texts;
    for (const CollectiveBudget &budget : spec.collectives)
      texts.push_back(budget.text);
    if (texts.empty())
      return std::nullopt;
    return tomlStrings(texts);
  };
  return key;
}

Key pipelineSchedule() {
  std::string names;
  for (const Word<Schedule> &word : words<Schedule>())
    names += (names.empty() ? "" : ", ") + tomlString(word.text);
  Key key{"pipeline", "schedule", names + " or a .csv file", {}, {}, false, {}};
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
  Key key{"pipeline", "layers", R"("auto" or an array of layers a stage)",
          {},         {},       false,
          {}};
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

/// 0 is "auto".
Key micro() {
  Key key = count("batch", "micro",
                  [](Spec &s) -> uint32_t & { return s.batch.micro; });
  key.expected += R"(, or "auto")";
  key.read = [read = key.read](const Value &value, Spec &spec) {
    if (value.kind != Value::Kind::string)
      return read(value, spec);
    spec.batch.micro = 0;
    return value.text == "auto";
  };
  key.print = [print = key.print](const Spec &spec) {
    return spec.batch.micro == 0 ? tomlString("auto") : print(spec);
  };
  return key;
}

void addMeshKeys(std::vector<Key> &keys) {
  keys.push_back(meshAxes());
  keys.push_back(count("batch", "global",
                       [](Spec &s) -> uint32_t & { return s.batch.global; }));
  keys.push_back(micro());
  keys.push_back(count("batch", "sequence",
                       [](Spec &s) -> uint32_t & { return s.batch.sequence; }));
  keys.push_back(choice(
      "batch", "documents", {"joined", "separate"},
      [](Spec &s, const std::string &t) {
        s.batch.separateDocuments = t == "separate";
      },
      [](const Spec &s) {
        return s.batch.separateDocuments ? "separate" : "joined";
      }));
  keys.push_back(choice(
      "batch", "positions", {"sequence", "document"},
      [](Spec &s, const std::string &t) {
        s.batch.restartPositions = t == "document";
      },
      [](const Spec &s) {
        return s.batch.restartPositions ? "document" : "sequence";
      }));
  keys.push_back(onOrOff(
      "batch", "document_end_loss",
      [](Spec &s, double on) { s.batch.documentEndLoss = on != 0; },
      [](const Spec &s) { return s.batch.documentEndLoss ? 1 : 0; }));
  for (const char *dim :
       {"batch", "sequence", "residual_sequence", "embed", "heads", "kv_heads",
        "head_dim", "ffn", "vocab", "experts", "layers"})
    keys.push_back(shardRule(dim));
  keys.push_back(tensorPins());
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

void addParallelKeys(std::vector<Key> &keys) {
  keys.push_back(zeroStage());
  keys.push_back(zeroAxes());
  Key gathered = choice(
      "zero", "gathered", {"free", "keep"},
      [](Spec &s, const std::string &t) { s.zero.keepGathered = t == "keep"; },
      {});
  gathered.print = [](const Spec &s) -> std::optional<std::string> {
    if (s.zero.stage != 3)
      return std::nullopt;
    return tomlString(s.zero.keepGathered ? "keep" : "free");
  };
  keys.push_back(gathered);
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

void addStepKeys(std::vector<Key> &keys) {
  keys.push_back(
      word<Recompute>("recompute", "policy",
                      [](Spec &s) -> Recompute & { return s.recompute; }));
  keys.push_back(word<When>("overlap", "collectives", [](Spec &s) -> When & {
    return s.overlap.collectives;
  }));
  keys.push_back(bucket());
  keys.push_back(word<Type>("precision", "compute",
                            [](Spec &s) -> Type & { return s.compute; }));
  keys.push_back(onlyOne("precision", "master", {"f32"}, "f32"));
  keys.push_back(word<Type>("precision", "gradients",
                            [](Spec &s) -> Type & { return s.gradients; }));
  keys.push_back(
      word<Rounding>("precision", "rounding",
                     [](Spec &s) -> Rounding & { return s.rounding; }));
  keys.push_back(choice(
      "precision", "matmul", {"compute", "fp8"},
      [](Spec &s, const std::string &t) { s.fp8 = t == "fp8"; },
      [](const Spec &s) { return s.fp8 ? "fp8" : "compute"; }));
  keys.push_back(word<Scaling>("precision", "scaling",
                               [](Spec &s) -> Scaling & { return s.scaling; }));
  addOptimizerKeys(keys);
}

void addTargetKeys(std::vector<Key> &keys) {
  keys.push_back(word<Device>("target", "device",
                              [](Spec &s) -> Device & { return s.device; }));
  keys.push_back(choice(
      "target", "arch",
      {"native", "x86-64-v3", "x86-64-v4", "sm_80", "sm_90a", "sm_100"},
      [](Spec &s, const std::string &t) { s.arch = t; },
      [](const Spec &s) { return s.arch; }));
  keys.push_back(machine());
  keys.push_back(word<When>("target", "merge_launches",
                            [](Spec &s) -> When & { return s.mergeLaunches; }));
  keys.push_back(word<When>("target", "epilogues",
                            [](Spec &s) -> When & { return s.epilogues; }));
  keys.push_back(memoryPerRank());
  keys.push_back(collectiveBudgets());
}

} // namespace

const std::vector<Key> &allKeys() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> all;
    addMeshKeys(all);
    addParallelKeys(all);
    addStepKeys(all);
    addTargetKeys(all);
    return all;
  }();
  return keys;
}

const std::vector<std::string> &allSections() {
  static const std::vector<std::string> sections = [] {
    std::vector<std::string> all;
    for (const Key &key : allKeys())
      if (all.empty() || all.back() != key.section)
        all.push_back(key.section);
    return all;
  }();
  return sections;
}

} // namespace meshwork::spec
