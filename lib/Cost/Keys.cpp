#include "lib/Cost/Keys.h"

#include "lib/Spec/TomlFile.h"
#include "lib/Spec/Words.h"

#include <algorithm>
#include <cmath>

namespace meshwork::cost {
namespace {

constexpr size_t longestName = 64;

using NumberOf = std::function<double &(Machine &)>;

/// A finite number with a unit.
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

Key count(const char *path, bool required, uint32_t most,
          uint32_t Machine::*field) {
  Key key{path,
          "a whole number from 1 to " + std::to_string(most),
          required,
          {},
          {}};
  key.read = [=](const spec::Value &value, Machine &machine) {
    if (value.kind != spec::Value::Kind::integer || value.integer < 1 ||
        value.integer > most)
      return false;
    machine.*field = static_cast<uint32_t>(value.integer);
    return true;
  };
  key.print = [=](const Machine &machine) -> std::optional<std::string> {
    if (machine.*field == 0)
      return std::nullopt;
    return std::to_string(machine.*field);
  };
  return key;
}

bool isName(const std::string &text) {
  return !text.empty() && text.size() <= longestName &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

Key name() {
  Key key{"name",
          R"(at most 64 lower-case letters, digits, "-", "_" and ".")",
          true,
          {},
          {}};
  key.read = [](const spec::Value &value, Machine &machine) {
    if (value.kind != spec::Value::Kind::string || !isName(value.text))
      return false;
    machine.name = value.text;
    return true;
  };
  key.print = [](const Machine &m) { return "\"" + m.name + "\""; };
  return key;
}

Key device() {
  Key key{"device", spec::listOfWords<spec::Device>(), true, {}, {}};
  key.read = [](const spec::Value &value, Machine &machine) {
    std::optional<spec::Device> read =
        value.kind == spec::Value::Kind::string
            ? spec::readWord<spec::Device>(value.text)
            : std::nullopt;
    if (read)
      machine.device = *read;
    return read.has_value();
  };
  key.print = [](const Machine &machine) {
    return "\"" + std::string(spec::wordOf(machine.device)) + "\"";
  };
  return key;
}

Key arch() {
  std::span<const char *const> known = spec::gpuArchs();
  std::string expected;
  for (size_t i = 0; i < known.size(); ++i)
    expected += (i == 0                 ? ""
                 : i + 1 < known.size() ? ", "
                                        : " or ") +
                quote(known[i]);
  Key key{"arch", expected, false, {}, {}};
  key.read = [known](const spec::Value &value, Machine &machine) {
    machine.arch = value.text;
    return value.kind == spec::Value::Kind::string &&
           std::find(known.begin(), known.end(), value.text) != known.end();
  };
  key.print = [](const Machine &machine) -> std::optional<std::string> {
    if (machine.arch.empty())
      return std::nullopt;
    return quote(machine.arch);
  };
  return key;
}

Key takesCores(const std::string &path, size_t link) {
  Key key{path, "true or false", false, {}, {}};
  key.read = [link](const spec::Value &value, Machine &machine) {
    machine.links[link].takesCores = value.boolean;
    return value.kind == spec::Value::Kind::boolean;
  };
  key.print = [link](const Machine &machine) -> std::optional<std::string> {
    return machine.links[link].takesCores ? "true" : "false";
  };
  return key;
}

using Rates = std::array<double, numArithmetics> Machine::*;

void addRates(std::vector<Key> &keys, const std::string &section, Rates rates,
              bool required) {
  constexpr const char *names[numArithmetics] = {"f32", "bf16", "fp8"};
  for (size_t i = 0; i < numArithmetics; ++i)
    keys.push_back(number(
        section + names[i], required && i == 0, 1e6, 1e18, "flops a second",
        [i, rates](Machine &m) -> double & { return (m.*rates)[i]; }));
}

/// A peak that is what products reach prints nothing.
void addPeaks(std::vector<Key> &keys) {
  size_t first = keys.size();
  addRates(keys, "peak.", &Machine::peak, false);
  for (size_t i = first; i < keys.size(); ++i)
    keys[i].print = [type = i - first, print = keys[i].print](
                        const Machine &m) -> std::optional<std::string> {
      bool isOwn = m.peak[type] != 0 && m.peak[type] != m.flops[type];
      return isOwn ? print(m) : std::nullopt;
    };
}

/// The usual figure prints nothing.
Key host() {
  Key key = number("memory.host", false, 1e3, 1e18, "bytes a second",
                   [](Machine &m) -> double & { return m.host; });
  key.print = [print =
                   key.print](const Machine &m) -> std::optional<std::string> {
    return m.host == m.usualHost() ? std::nullopt : print(m);
  };
  return key;
}

/// A class that the file says nothing of prints nothing.
void addLink(std::vector<Key> &keys, size_t link) {
  std::string section =
      "link." + std::string(nameOf(static_cast<LinkClass>(link))) + ".";
  size_t first = keys.size();
  keys.push_back(
      number(section + "latency", false, 0, 10, "seconds",
             [link](Machine &m) -> double & { return m.links[link].latency; }));
  keys.push_back(number(
      section + "bandwidth", false, 1e3, 1e15, "bytes a second",
      [link](Machine &m) -> double & { return m.links[link].bandwidth; }));
  keys.push_back(takesCores(section + "takes_cores", link));
  for (size_t i = first; i < keys.size(); ++i)
    keys[i].print = [link, print = keys[i].print](
                        const Machine &m) -> std::optional<std::string> {
      return m.links[link].isGiven ? print(m) : std::nullopt;
    };
}

std::vector<Key> makeKeys() {
  std::vector<Key> keys = {name(), device(), arch()};
  keys.push_back(
      count("ranks_per_node", true, 1 << 20, &Machine::ranksPerNode));
  keys.push_back(count("cores", false, 1 << 16, &Machine::cores));
  addRates(keys, "flops.", &Machine::flops, true);
  keys.push_back(number("flops.half_size", false, 0, 1e15, "flops",
                        [](Machine &m) -> double & { return m.halfSize; }));
  addRates(keys, "attention.", &Machine::attention, false);
  addPeaks(keys);
  keys.push_back(number("memory.bandwidth", true, 1e6, 1e18, "bytes a second",
                        [](Machine &m) -> double & { return m.memory; }));
  keys.push_back(number("memory.kernels", false, 1e6, 1e18, "bytes a second",
                        [](Machine &m) -> double & { return m.kernels; }));
  keys.push_back(host());
  keys.push_back(number("memory.capacity", false, 0, 1e18, "bytes",
                        [](Machine &m) -> double & { return m.capacity; }));
  keys.push_back(number("launch.overhead", false, 0, 1, "seconds",
                        [](Machine &m) -> double & { return m.launch; }));
  keys.push_back(number("launch.hand_over", false, 0, 1, "seconds",
                        [](Machine &m) -> double & { return m.handOver; }));
  for (size_t i = 0; i < numLinkClasses; ++i)
    addLink(keys, i);
  return keys;
}
} // namespace

const char *nameOf(LinkClass link) {
  constexpr const char *names[numLinkClasses] = {"in_process", "within_node",
                                                 "between_nodes"};
  return names[static_cast<size_t>(link)];
}

const std::vector<Key> &allKeys() {
  static const std::vector<Key> keys = makeKeys();
  return keys;
}

} // namespace meshwork::cost
