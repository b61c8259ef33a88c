#include "lib/Spec/KeyKinds.h"
#include "lib/Spec/Size.h"
#include "lib/Spec/TomlFile.h"

#include <algorithm>
#include <cmath>

namespace meshwork::spec {
std::string listed(const Strings &choices) {
  std::string text;
  for (size_t i = 0; i < choices.size(); ++i)
    text += (i == 0                   ? ""
             : i + 1 < choices.size() ? ", "
                                      : " or ") +
            tomlString(choices[i]);
  return text;
}

Strings architectures(Device device) {
  if (device != Device::cuda)
    return {"native", "x86-64-v3", "x86-64-v4"};
  Strings archs = {"native"};
  archs.insert(archs.end(), gpuArchs().begin(), gpuArchs().end());
  return archs;
}

Key count(const char *section, const char *name, uint32_t &(*field)(Spec &)) {
  Key key{section, name, "a whole number from 1 to 2147483647", {}, {},
          true,    {}};
  key.read = [field](const Value &value, Spec &spec) {
    if (value.kind != Value::Kind::integer || value.integer < 1 ||
        value.integer > INT32_MAX)
      return false;
    field(spec) = static_cast<uint32_t>(value.integer);
    return true;
  };
  key.print = [field](const Spec &spec) {
    return std::to_string(field(const_cast<Spec &>(spec)));
  };
  return key;
}

Key wholeNumber(const char *section, const char *name, uint32_t least,
                uint32_t most, std::function<void(Spec &, uint32_t)> store,
                std::function<std::optional<uint32_t>(const Spec &)> show) {
  std::string expected = "a whole number from " + std::to_string(least) +
                         " to " + std::to_string(most);
  Key key{section, name, std::move(expected), {}, {}, false, {}};
  key.read = [store, least, most](const Value &value, Spec &spec) {
    if (value.kind != Value::Kind::integer || value.integer < least ||
        value.integer > most)
      return false;
    store(spec, static_cast<uint32_t>(value.integer));
    return true;
  };
  key.print = [show](const Spec &spec) -> std::optional<std::string> {
    std::optional<uint32_t> value = show(spec);
    return value ? std::optional(std::to_string(*value)) : std::nullopt;
  };
  return key;
}

Key number(const char *section, const char *name, const char *expected,
           bool (*legal)(double), std::function<void(Spec &, double)> store,
           std::function<std::optional<double>(const Spec &)> show) {
  Key key{section, name, expected, {}, {}, false, {}};
  key.read = [store, legal](const Value &value, Spec &spec) {
    bool isNumber =
        value.kind == Value::Kind::integer || value.kind == Value::Kind::number;
    if (!isNumber || !std::isfinite(value.number) || !legal(value.number))
      return false;
    store(spec, value.number);
    return true;
  };
  key.print = [show](const Spec &spec) -> std::optional<std::string> {
    std::optional<double> value = show(spec);
    return value ? std::optional(tomlNumber(*value)) : std::nullopt;
  };
  return key;
}

Key onOrOff(const char *section, const char *name,
            std::function<void(Spec &, double)> store,
            std::function<std::optional<double>(const Spec &)> show) {
  Key key{section, name, "true or false", {}, {}, false, {}};
  key.read = [store](const Value &value, Spec &spec) {
    if (value.kind != Value::Kind::boolean)
      return false;
    store(spec, value.boolean);
    return true;
  };
  key.print = [show](const Spec &spec) -> std::optional<std::string> {
    std::optional<double> value = show(spec);
    if (!value)
      return std::nullopt;
    return *value != 0 ? "true" : "false";
  };
  return key;
}

Key size(const char *section, const char *name, const char *expected,
         uint64_t least, uint64_t most,
         std::function<void(Spec &, uint64_t)> store,
         std::function<std::optional<uint64_t>(const Spec &)> show) {
  Key key{section, name, expected, {}, {}, false, {}};
  key.read = [store, least, most](const Value &value, Spec &spec) {
    std::optional<uint64_t> bytes;
    if (value.kind == Value::Kind::string)
      bytes = parseSize(value.text);
    if (!bytes || *bytes < least || *bytes > most)
      return false;
    store(spec, *bytes);
    return true;
  };
  key.print = [show](const Spec &spec) -> std::optional<std::string> {
    std::optional<uint64_t> bytes = show(spec);
    if (!bytes)
      return std::nullopt;
    return tomlString(std::to_string(*bytes) + " B");
  };
  return key;
}

Key choice(const char *section, const char *name, Strings choices,
           std::function<void(Spec &, const std::string &)> store,
           std::function<std::string(const Spec &)> show) {
  Key key{section, name, listed(choices), {}, {}, false, {}};
  key.choices = choices;
  key.read = [choices, store](const Value &value, Spec &spec) {
    if (value.kind != Value::Kind::string ||
        std::find(choices.begin(), choices.end(), value.text) == choices.end())
      return false;
    if (store)
      store(spec, value.text);
    return true;
  };
  if (show)
    key.print = [show](const Spec &spec) { return tomlString(show(spec)); };
  return key;
}

Key onlyOne(const char *section, const char *name, Strings choices,
            std::string supported) {
  Key key = choice(section, name, std::move(choices), {},
                   [supported](const Spec &) { return supported; });
  key.refusal = [supported](const Value &value) {
    return value.text == supported
               ? ""
               : "write " + tomlString(supported) + ", or leave the line out";
  };
  return key;
}

Key refused(Key key, const char *instead) {
  key.refusal = [instead](const Value &) { return std::string(instead); };
  return key;
}

Key checked(const char *section, const char *name, const char *expected,
            bool (*legal)(const Value &)) {
  Key key{section, name, expected, {}, {}, false, {}};
  key.read = [legal](const Value &value, Spec &) { return legal(value); };
  return key;
}

void addTableMistakes(const Value &table, const std::vector<Column> &columns,
                      const std::string &names, std::vector<Mistake> &to) {
  if (table.kind != Value::Kind::table) {
    to.push_back({table.where,
                  "found " + table.found() + ", expected a table of " + names});
    return;
  }
  Strings known;
  for (const Column &column : columns)
    known.push_back(column.name);
  for (size_t i = 0; i < table.keys.size(); ++i) {
    const Value &value = table.items[i];
    auto column = std::find(known.begin(), known.end(), table.keys[i]);
    if (column == known.end())
      to.push_back({value.where, "found key " + quote(table.keys[i]) +
                                     ", expected " + names +
                                     suggestion(table.keys[i], known)});
    else if (std::string expected =
                 columns[static_cast<size_t>(column - known.begin())].expected(
                     value);
             !expected.empty())
      to.push_back({value.where, table.keys[i] + ": found " + value.found() +
                                     ", " + expected});
  }
  for (const Column &column : columns)
    if (column.isNeeded && std::find(table.keys.begin(), table.keys.end(),
                                     column.name) == table.keys.end())
      to.push_back({table.where, "has no " + column.name});
}

} // namespace meshwork::spec
