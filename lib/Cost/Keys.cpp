#include "lib/Cost/KeyMakers.h"

#include "lib/Spec/Words.h"

#include <algorithm>

namespace meshwork::cost {
namespace {

constexpr size_t longestName = 64;

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

std::vector<Key> makeKeys() {
  std::vector<Key> keys = {name(), device(), arch()};
  keys.push_back(
      count("ranks_per_node", true, 1 << 20,
            [](Machine &m) -> uint32_t & { return m.ranksPerNode; }));
  keys.push_back(count("cores", false, 1 << 16,
                       [](Machine &m) -> uint32_t & { return m.cores; }));
  addWorkKeys(keys);
  addLinkKeys(keys);
  addRunKeys(keys);
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
