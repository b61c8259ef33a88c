// [mesh], [batch] and [shard].
#include <algorithm>

#include "lib/Spec/KeyKinds.h"
#include "lib/Spec/Keys.h"

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

std::string expectedText(const Value &value) {
  return value.kind == Value::Kind::string ? "" : "expected a string";
}

std::vector<Mistake> pinMistakes(const Value &value) {
  std::vector<Mistake> mistakes;
  if (value.kind == Value::Kind::array)
    for (const Value &pin : value.items)
      addTableMistakes(
          pin, {{"dims", true, expectedText}, {"name", true, expectedText}},
          "name and dims", mistakes);
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

} // namespace

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
        "head_dim", "ffn", "vocab", "experts", "expert_ffn", "layers"})
    keys.push_back(shardRule(dim));
  keys.push_back(tensorPins());
}

} // namespace meshwork::spec
