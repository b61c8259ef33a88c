// What checks across keys have in common. Internal to lib/Spec.
#pragma once

#include <algorithm>
#include <set>

#include "lib/Spec/Document.h"
#include "lib/Spec/Spec.h"

namespace meshwork::spec {

/// A spec that was read, where its keys stand, and what was found wrong.
class Checks {
public:
  Checks(const Document &document, const std::string &filename,
         const std::set<std::string> &broken, Spec &spec,
         Diagnostics &diagnostics)
      : spec(spec), diagnostics(diagnostics), broken(broken),
        document(document), filename(filename) {}

protected:
  void error(const std::string &key, const std::string &message) {
    auto entry = document.find(key);
    Location where = entry == document.end() ? Location{filename, 0, 0}
                                             : entry->second.value.where;
    diagnostics.push_back({Severity::error, where, key + ": " + message});
  }

  /// The same of a key that changes nothing beside the others.
  void meaningless(const std::string &key, const std::string &message) {
    error(key, message);
    diagnostics.back().isMeaningless = true;
  }

  /// Whether these keys have values that can be compared.
  bool sound(std::initializer_list<const char *> keys) const {
    return std::none_of(keys.begin(), keys.end(),
                        [&](const char *key) { return broken.contains(key); });
  }

  bool given(const char *key) const { return document.contains(key); }

  const Axis *findAxis(const std::string &name) const {
    for (const Axis &axis : spec.mesh)
      if (axis.name == name)
        return &axis;
    return nullptr;
  }

  /// Of a name that the mesh lacks. A usual one is not another one, mistyped.
  std::string unknownAxis(const std::string &name) const {
    static const std::set<std::string> usual = {"dp", "fsdp", "tp", "cp",
                                                "pp", "sp",   "ep"};
    std::vector<std::string> names;
    for (const Axis &axis : spec.mesh)
      names.push_back(axis.name);
    std::string text =
        "found axis " + quote(name) + ", expected one of mesh.axes";
    return text + (usual.contains(name)
                       ? "; to have it, add " + quote(name + "=2") + ", say"
                       : suggestion(name, names));
  }

  std::vector<std::string> axesOf(const std::string &dim) const {
    for (const ShardRule &rule : spec.shard)
      if (rule.dim == dim)
        return rule.axes;
    return {};
  }

  void warn(const std::string &key, const std::string &message) {
    error(key, message);
    diagnostics.back().severity = Severity::warning;
  }

  Spec &spec;
  Diagnostics &diagnostics;
  const std::set<std::string> &broken; // keys without a usable value

private:
  const Document &document;
  const std::string &filename;
};

/// Fills the defaults of [shard] and [zero], and checks what the axes of the
/// mesh split. False: the mesh itself is wrong, and nothing was looked at.
bool completeAndCheckSplits(const Checks &checks);

/// Completes [pipeline], and checks it, [zero] and [context] against that.
void checkStrategies(const Checks &checks);

/// Checks [offload] against [optimizer], which is complete.
void checkOffload(const Checks &checks);

} // namespace meshwork::spec
