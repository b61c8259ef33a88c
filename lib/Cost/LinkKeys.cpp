// Keys of what lies between ranks.
#include "lib/Cost/KeyMakers.h"

namespace meshwork::cost {
namespace {

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
  keys.push_back(numberBeside(
      0, section + "hop", 0, 1, "seconds",
      [link](Machine &m) -> double & { return m.links[link].hop; }));
  keys.push_back(numberBeside(
      0, section + "half_size", 0, 1e15, "bytes",
      [link](Machine &m) -> double & { return m.links[link].halfSize; }));
  for (size_t i = first; i < keys.size(); ++i)
    keys[i].print = [link, print = keys[i].print](
                        const Machine &m) -> std::optional<std::string> {
      return m.links[link].isGiven ? print(m) : std::nullopt;
    };
}

/// The older name of the bandwidth is read and never printed.
Key hostBandwidth(const char *path, bool isPrinted) {
  Key key = number(path, false, 1e3, 1e18, "bytes a second",
                   [](Machine &m) -> double & { return m.host.bandwidth; });
  key.print = [isPrinted, print = key.print](
                  const Machine &m) -> std::optional<std::string> {
    bool isUsual = m.host.bandwidth == m.usualHost();
    return isPrinted && !isUsual ? print(m) : std::nullopt;
  };
  return key;
}

Key hostTakesCores() {
  Key key{"link.host.takes_cores", "true or false", false, {}, {}};
  key.read = [](const spec::Value &value, Machine &machine) {
    machine.host.takesCores = value.boolean;
    return value.kind == spec::Value::Kind::boolean;
  };
  key.print = [](const Machine &machine) -> std::optional<std::string> {
    if (!machine.host.takesCores)
      return std::nullopt;
    return *machine.host.takesCores ? "true" : "false";
  };
  return key;
}

void addHostLink(std::vector<Key> &keys) {
  keys.push_back(hostBandwidth(olderHostBandwidth, false));
  keys.push_back(hostBandwidth(hostBandwidthPath, true));
  keys.push_back(
      numberBeside(0, "link.host.latency", 0, 10, "seconds",
                   [](Machine &m) -> double & { return m.host.latency; }));
  keys.push_back(
      count("link.host.shared_by", false, 1 << 10,
            [](Machine &m) -> uint32_t & { return m.host.sharedBy; }));
  keys.push_back(hostTakesCores());
}

} // namespace

void addLinkKeys(std::vector<Key> &keys) {
  keys.push_back(count("node.adapters", false, 1 << 10,
                       [](Machine &m) -> uint32_t & { return m.adapters; }));
  keys.push_back(numberBeside(0, "nodes.jitter", 0, 1, "a part of the time",
                              [](Machine &m) -> double & { return m.jitter; }));
  keys.push_back(numberBeside(0, "nodes.late", 0, 1, "seconds",
                              [](Machine &m) -> double & { return m.late; }));
  keys.push_back(
      numberBeside(0, "ranks.jitter", 0, 1, "a part of the time",
                   [](Machine &m) -> double & { return m.rankJitter; }));
  keys.push_back(
      numberBeside(0, "overlap.slowdown", 0, 1, "a part of the hidden time",
                   [](Machine &m) -> double & { return m.slowdown; }));
  for (size_t i = 0; i < numLinkClasses; ++i)
    addLink(keys, i);
  addHostLink(keys);
  keys.push_back(count("link.spine.nodes", false, 1 << 20,
                       [](Machine &m) -> uint32_t & { return m.spine.nodes; }));
  keys.push_back(
      numberBeside(1, "link.spine.share", 1e-3, 1, "a part of the bandwidth",
                   [](Machine &m) -> double & { return m.spine.share; }));
}

} // namespace meshwork::cost
