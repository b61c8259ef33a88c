// [[optimizer.groups]]: parameters that are trained in a way of their own.
#include <algorithm>
#include <cmath>

#include "lib/Optimizer/Optimizer.h"
#include "lib/Spec/KeyKinds.h"
#include "lib/Spec/TomlFile.h"

namespace meshwork::spec {
namespace {

const Value *itemOf(const Value &table, const std::string &key) {
  auto found = std::find(table.keys.begin(), table.keys.end(), key);
  return found == table.keys.end()
             ? nullptr
             : &table.items[static_cast<size_t>(found - table.keys.begin())];
}

std::string expectedGlob(const Value &value) {
  bool fits = value.kind == Value::Kind::string && !value.text.empty();
  return fits ? "" : "expected the glob of a parameter's name, like \"*.bias\"";
}

std::string expectedFactor(const Value &value) {
  bool isNumber =
      value.kind == Value::Kind::integer || value.kind == Value::Kind::number;
  bool fits = isNumber && std::isfinite(value.number) &&
              optimizer::magnitude.holds(value.number);
  return fits ? "" : std::string("expected ") + optimizer::magnitude.expected;
}

/// Of one table.
void addMistakes(const Value &group, std::vector<Mistake> &mistakes) {
  addTableMistakes(group,
                   {{"name", true, expectedGlob},
                    {"rate", false, expectedFactor},
                    {"weight_decay", false, expectedFactor}},
                   "name, rate and weight_decay", mistakes);
  if (group.kind == Value::Kind::table && !itemOf(group, "rate") &&
      !itemOf(group, "weight_decay"))
    mistakes.push_back(
        {group.where, "changes nothing: give rate or weight_decay"});
}

std::vector<Mistake> mistakesOf(const Value &value) {
  std::vector<Mistake> mistakes;
  if (value.kind == Value::Kind::array)
    for (const Value &group : value.items)
      addMistakes(group, mistakes);
  return mistakes;
}

OptimizerGroup groupOf(const Value &table) {
  auto factor = [&](const char *key) {
    const Value *found = itemOf(table, key);
    return found ? found->number : 1;
  };
  return {itemOf(table, "name")->text, factor("rate"), factor("weight_decay"),
          table.where.text()};
}

std::string textOf(const OptimizerGroup &group) {
  std::string text = "{name = " + tomlString(group.name);
  if (group.rate != 1)
    text += ", rate = " + tomlNumber(group.rate);
  if (group.weightDecay != 1 || group.rate == 1)
    text += ", weight_decay = " + tomlNumber(group.weightDecay);
  return text + "}";
}
} // namespace

void addGroupKeys(std::vector<Key> &keys) {
  Key key{
      "optimizer", "groups", "tables of a name with rate, weight_decay or both",
      {},          {},       false,
      {}};
  key.mistakes = mistakesOf;
  key.read = [](const Value &value, Spec &spec) {
    if (value.kind != Value::Kind::array || !mistakesOf(value).empty())
      return false;
    for (const Value &group : value.items)
      spec.optimizer.groups.push_back(groupOf(group));
    return true;
  };
  key.print = [](const Spec &spec) -> std::optional<std::string> {
    std::string text;
    for (const OptimizerGroup &group : spec.optimizer.groups)
      text += (text.empty() ? "[" : ", ") + textOf(group);
    return text.empty() ? std::nullopt : std::optional(text + "]");
  };
  keys.push_back(key);
}

} // namespace meshwork::spec
