// A machine file, both ways.
#include "lib/Cost/Keys.h"
#include "lib/Spec/TomlFile.h"

#include <algorithm>

namespace meshwork::cost {
namespace {

std::vector<std::string> pathsOf(bool sections) {
  std::vector<std::string> paths;
  for (const Key &key : allKeys()) {
    std::string path = sections ? key.section() : key.path;
    for (; !path.empty() &&
           std::find(paths.begin(), paths.end(), path) == paths.end();
         path = sections ? path.substr(0, path.find('.')) : path)
      paths.push_back(path);
  }
  return paths;
}

class Reader {
public:
  Reader(const spec::Document &document, const std::string &filename,
         MachineResult &result)
      : document(document), filename(filename), result(result) {}

  void run() {
    for (const auto &[path, entry] : document)
      checkKnown(path, entry);
    for (const Key &key : allKeys())
      read(key);
    checkArch();
    checkTogether("products.multiprocessors", "products.tiles");
    checkTogether("products.tiles", "products.multiprocessors");
    checkTogether("link.spine.nodes", "link.spine.share");
    checkTogether("link.spine.share", "link.spine.nodes");
    checkTogether("node.adapters", "link.between_nodes");
    checkTogether("failures.hours", "storage.bandwidth");
    checkTogether("failures.restart", "failures.hours");
    checkTiles();
    checkHostLink();
    completeRates();
    completeLinks();
  }

  Machine machine;

private:
  void error(const Location &where, std::string message) {
    result.diagnostics.push_back({Severity::error, where, std::move(message)});
  }
  bool has(const std::string &path) const { return document.contains(path); }

  void checkKnown(const std::string &path, const spec::Entry &entry) {
    static const std::vector<std::string> keys = pathsOf(false),
                                          sections = pathsOf(true);
    bool isTable = entry.value.kind == spec::Value::Kind::table;
    bool isSection =
        std::find(sections.begin(), sections.end(), path) != sections.end();
    if (isSection && !isTable)
      error(entry.value.where, path + ": found " + entry.value.found() +
                                   ", expected a table [" + path + "]");
    size_t dot = path.rfind('.');
    bool isReported = // with the table that it stands in
        dot != std::string::npos && has(path.substr(0, dot)) &&
        std::find(sections.begin(), sections.end(), path.substr(0, dot)) ==
            sections.end();
    if (isSection || isReported ||
        std::find(keys.begin(), keys.end(), path) != keys.end())
      return;
    error(entry.key, (isTable ? "unknown table [" : "unknown key ") + path +
                         (isTable ? "]" : "") +
                         suggestion(path, isTable ? sections : keys));
  }

  void read(const Key &key) {
    auto entry = document.find(key.path);
    if (entry == document.end()) {
      if (key.required)
        error({filename, 0, 0},
              key.path + ": missing, expected " + key.expected);
      return;
    }
    const spec::Value &value = entry->second.value;
    if (!key.read(value, machine))
      error(value.where, key.path + ": found " + value.found() + ", expected " +
                             key.expected);
  }

  void checkArch() {
    auto entry = document.find("arch");
    if (entry != document.end() && machine.device == spec::Device::cpu &&
        result.diagnostics.empty())
      error(entry->second.value.where,
            "arch: found " + entry->second.value.found() +
                " with device \"cpu\", expected none: it names GPUs");
  }

  void checkTogether(const std::string &path, const std::string &other) {
    auto entry = document.find(path);
    if (entry != document.end() && !has(other))
      error(entry->second.key,
            path + ": found without " + other + ", which it belongs to");
  }

  void checkTiles() {
    auto half = document.find("flops.half_size");
    if (half != document.end() && machine.halfSize > 0 && has("products.tiles"))
      error(half->second.key,
            "flops.half_size: found beside products.tiles, expected one of "
            "them: both say how small products lose");
  }

  void checkHostLink() {
    auto older = document.find(olderHostBandwidth);
    if (older != document.end() && has(hostBandwidthPath))
      error(older->second.key, std::string(olderHostBandwidth) +
                                   ": found beside " + hostBandwidthPath +
                                   ", whose older name it is; leave it out");
  }

  /// A type that the file says nothing of is no faster than a wider one;
  /// attention is as fast as products, which reach their peak, and kernels as
  /// memory is.
  void completeRates() {
    for (size_t i = 0; i < numArithmetics; ++i) {
      if (machine.flops[i] == 0 && i > 0)
        machine.flops[i] = machine.flops[i - 1];
      if (machine.attention[i] == 0)
        machine.attention[i] = machine.flops[i];
      if (machine.gradient[i] == 0)
        machine.gradient[i] = machine.attention[i];
      if (machine.peak[i] == 0)
        machine.peak[i] = machine.flops[i];
    }
    if (machine.kernels == 0)
      machine.kernels = machine.memory;
    if (!has("attention.backward.half_head"))
      machine.halfHeadOfGradient = machine.halfHead;
    if (!has("attention.backward.half_keys"))
      machine.halfKeysOfGradient = machine.halfKeys;
    if (machine.host.bandwidth == 0)
      machine.host.bandwidth = machine.usualHost();
  }

  /// A class that the file says nothing of is like the next wider one, else
  /// like the next narrower one.
  void completeLinks() {
    bool any = false;
    for (size_t i = 0; i < numLinkClasses; ++i) {
      any |= isGiven(i);
      checkLink(i);
    }
    if (!any && result.diagnostics.empty())
      error({filename, 0, 0},
            "has no link, expected at least one of [link.in_process], "
            "[link.within_node] and [link.between_nodes]");
    for (size_t i = 0; i < numLinkClasses; ++i) {
      if (!isGiven(i))
        machine.links[i] = machine.links[nearestGiven(i)];
      machine.links[i].isGiven = isGiven(i);
    }
  }

  size_t nearestGiven(size_t link) const {
    for (size_t i = link + 1; i < numLinkClasses; ++i)
      if (isGiven(i))
        return i;
    for (size_t i = link; i-- > 0;)
      if (isGiven(i))
        return i;
    return link;
  }

  static std::string sectionOf(size_t link) {
    return std::string("link.") + nameOf(static_cast<LinkClass>(link));
  }
  bool isGiven(size_t link) const { return has(sectionOf(link)); }

  void checkLink(size_t link) {
    auto table = document.find(sectionOf(link));
    for (const char *key : {".latency", ".bandwidth"})
      if (table != document.end() && !has(table->first + key))
        error(table->second.key, table->first + key +
                                     ": missing, a link has a latency and a "
                                     "bandwidth");
  }

  const spec::Document &document;
  const std::string &filename;
  MachineResult &result;
};
} // namespace

MachineResult readMachine(std::string_view text, const std::string &filename,
                          const std::vector<std::string> &overrides) {
  MachineResult result;
  if (text.size() > maxMachineBytes) {
    result.diagnostics.push_back(
        {Severity::error,
         {filename, 0, 0},
         "is " + std::to_string(text.size()) +
             " bytes, expected a machine file of at most " +
             std::to_string(maxMachineBytes)});
    return result;
  }
  spec::Document document =
      spec::readDocument(text, filename, overrides, result.diagnostics);
  if (hasErrors(result.diagnostics)) // what is missing was not read
    return result;
  Reader reader(document, filename, result);
  reader.run();
  sortByPlace(result.diagnostics);
  if (!hasErrors(result.diagnostics))
    result.machine = std::move(reader.machine);
  return result;
}

std::string printOnOneLine(const Machine &machine) {
  const Machine *shipped = findShipped(machine.name);
  if (shipped && *shipped == machine)
    return machine.name;
  std::string text;
  for (const Key &key : allKeys())
    if (std::optional<std::string> value = key.print(machine))
      text += (text.empty() ? "" : " ") + key.path + "=" + *value;
  return text;
}

MachineResult readFromOneLine(std::string_view text) {
  if (const Machine *shipped = findShipped(text))
    return {*shipped, {}};
  std::string lines(text);
  std::replace(lines.begin(), lines.end(), ' ', '\n');
  return readMachine(lines, "the machine");
}

std::string print(const Machine &machine) {
  std::string text, section;
  for (const Key &key : allKeys()) {
    std::optional<std::string> value = key.print(machine);
    if (!value)
      continue;
    if (section != key.section())
      text += "\n[" + key.section() + "]\n";
    section = key.section();
    text += key.name() + " = " + *value + "\n";
  }
  return text;
}

} // namespace meshwork::cost
