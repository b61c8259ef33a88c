#include "lib/Cost/KeyMakers.h"

#include "lib/Spec/TomlFile.h"

namespace meshwork::cost {

Key number(std::string path, bool required, double least, double most,
           const char *unit, NumberOf field) {
  Key key{std::move(path),
          "a number from " + numberText(least) + " to " + numberText(most) +
              ", " + unit,
          required,
          {},
          {}};
  key.read = [=](const spec::Value &value, Machine &machine) {
    bool isNumber = value.kind == spec::Value::Kind::integer ||
                    value.kind == spec::Value::Kind::number;
    if (!isNumber || !(value.number >= least && value.number <= most))
      return false;
    field(machine) = value.number;
    return true;
  };
  key.print = [=](const Machine &machine) {
    return tomlNumber(field(const_cast<Machine &>(machine)));
  };
  return key;
}

Key numberBeside(double usual, std::string path, double least, double most,
                 const char *unit, NumberOf field) {
  Key key = number(std::move(path), false, least, most, unit, field);
  key.print = [=, print = key.print](
                  const Machine &machine) -> std::optional<std::string> {
    bool isUsual = field(const_cast<Machine &>(machine)) == usual;
    return isUsual ? std::nullopt : print(machine);
  };
  return key;
}

Key count(const char *path, bool required, uint32_t most,
          std::function<uint32_t &(Machine &)> field) {
  Key key{path,
          "a whole number from 1 to " + std::to_string(most),
          required,
          {},
          {}};
  key.read = [=](const spec::Value &value, Machine &machine) {
    if (value.kind != spec::Value::Kind::integer || value.integer < 1 ||
        value.integer > most)
      return false;
    field(machine) = static_cast<uint32_t>(value.integer);
    return true;
  };
  key.print = [=](const Machine &machine) -> std::optional<std::string> {
    uint32_t value = field(const_cast<Machine &>(machine));
    if (value == 0)
      return std::nullopt;
    return std::to_string(value);
  };
  return key;
}

void addRates(std::vector<Key> &keys, const std::string &section, Rates rates,
              bool required) {
  constexpr const char *names[numArithmetics] = {"f32", "bf16", "fp8"};
  for (size_t i = 0; i < numArithmetics; ++i)
    keys.push_back(number(
        section + names[i], required && i == 0, 1e6, 1e18, "flops a second",
        [i, rates](Machine &m) -> double & { return (m.*rates)[i]; }));
}

} // namespace meshwork::cost
