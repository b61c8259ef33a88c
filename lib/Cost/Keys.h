// Every key of a machine file. Internal to lib/Cost.
#ifndef MESHWORK_LIB_COST_KEYS_H
#define MESHWORK_LIB_COST_KEYS_H

#include "lib/Cost/Machine.h"
#include "lib/Spec/Document.h"

#include <functional>

namespace meshwork::cost {

struct Key {
  std::string path; // "link.within_node.latency"
  std::string expected;
  bool required = false;
  /// Stores the value; false when it is not what `expected` says.
  std::function<bool(const spec::Value &, Machine &)> read;
  /// TOML text of the value; nothing when the file needs no such line.
  std::function<std::optional<std::string>(const Machine &)> print;

  std::string section() const {
    size_t dot = path.rfind('.');
    return dot == std::string::npos ? "" : path.substr(0, dot);
  }
  std::string name() const { return path.substr(path.rfind('.') + 1); }
};

/// Of the host's link, and what it was called before.
inline constexpr const char *hostBandwidthPath = "link.host.bandwidth",
                            *olderHostBandwidth = "memory.host";

/// In the order in which they print: those of no section first.
const std::vector<Key> &allKeys();

} // namespace meshwork::cost

#endif // MESHWORK_LIB_COST_KEYS_H
