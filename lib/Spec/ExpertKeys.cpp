// [experts]: how tokens reach them, and what makes routers choose evenly.
#include <cmath>
#include <limits>

#include "lib/Optimizer/Optimizer.h"
#include "lib/Spec/KeyKinds.h"
#include "lib/Spec/TomlFile.h"

namespace meshwork::spec {
namespace {

/// "dropless", or a number.
Key expertsCapacity() {
  Key key{"experts", "capacity", "\"dropless\", or a number from 0.001 to 1e6",
          {},        {},         false,
          {}};
  key.read = [](const Value &value, Spec &spec) {
    bool isNumber =
        value.kind == Value::Kind::integer || value.kind == Value::Kind::number;
    bool isWord = value.kind == Value::Kind::string && value.text == "dropless";
    if (!isWord && !(isNumber && value.number >= 1e-3 && value.number <= 1e6))
      return false;
    spec.experts.capacity = isWord ? std::nullopt : std::optional(value.number);
    return true;
  };
  key.print = [](const Spec &s) -> std::optional<std::string> {
    if (!s.experts.capacity)
      return std::nullopt;
    return tomlNumber(*s.experts.capacity);
  };
  return key;
}

Key expertsGroup() {
  Key key = count("experts", "group",
                  [](Spec &s) -> uint32_t & { return s.experts.group; });
  key.required = false;
  key.print = [](const Spec &s) -> std::optional<std::string> {
    if (s.experts.group == 1)
      return std::nullopt;
    return std::to_string(s.experts.group);
  };
  return key;
}

Key expertsExchange() {
  Key key = word<Exchange>("experts", "exchange", [](Spec &s) -> Exchange & {
    return s.experts.exchange;
  });
  key.print = [](const Spec &s) -> std::optional<std::string> {
    if (!s.splits("experts"))
      return std::nullopt;
    return tomlString(wordOf(s.experts.exchange));
  };
  return key;
}

/// A number, or "worst".
Key expertsBound() {
  Key key{"experts", "bound", "a number from 1 on, or \"worst\"", {}, {},
          false,     {}};
  key.read = [](const Value &value, Spec &spec) {
    bool isWorst = value.kind == Value::Kind::string && value.text == "worst";
    bool isNumber =
        value.kind == Value::Kind::integer || value.kind == Value::Kind::number;
    if (!isWorst &&
        !(isNumber && std::isfinite(value.number) && value.number >= 1))
      return false;
    spec.experts.bound =
        isWorst ? std::numeric_limits<double>::infinity() : value.number;
    return true;
  };
  key.print = [](const Spec &s) -> std::optional<std::string> {
    if (!s.splits("experts") || s.experts.exchange == Exchange::gathered)
      return std::nullopt;
    return std::isfinite(s.experts.bound) ? tomlNumber(s.experts.bound)
                                          : tomlString("worst");
  };
  return key;
}

Key expertsBalance() {
  Key key = word<Balance>("experts", "balance", [](Spec &s) -> Balance & {
    return s.experts.balance;
  });
  key.print = [](const Spec &s) -> std::optional<std::string> {
    if (s.experts.balance == Balance::ofModel)
      return std::nullopt;
    return tomlString(wordOf(s.experts.balance));
  };
  return key;
}

/// Not printed where no spec gives it: a model without experts has none.
Key coefficient(const char *name, std::optional<double> Experts::*field) {
  return number(
      "experts", name, "0 or a number from 1e-30 to 1e30",
      optimizer::magnitude.holds,
      [field](Spec &spec, double value) { spec.experts.*field = value; },
      [field](const Spec &spec) { return spec.experts.*field; });
}

} // namespace

void addExpertKeys(std::vector<Key> &keys) {
  keys.push_back(expertsCapacity());
  keys.push_back(expertsGroup());
  keys.push_back(expertsExchange());
  keys.push_back(expertsBound());
  keys.push_back(expertsBalance());
  keys.push_back(
      coefficient("balance_coefficient", &Experts::balanceCoefficient));
  keys.push_back(coefficient("z_coefficient", &Experts::zCoefficient));
  keys.push_back(coefficient("bias_rate", &Experts::biasRate));
}

} // namespace meshwork::spec
