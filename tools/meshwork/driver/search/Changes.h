// What makes a plan need less memory.
#pragma once

#include "lib/Spec/Spec.h"

namespace meshwork::driver {

struct Change {
  std::string key, value; // as in --set
  const char *price;      // what it costs besides seconds

  std::string setting() const { return key + "=" + value; }
};

/// In the order to try them: what estimates leave out counts too, that small
/// products reach less of the peak. What is "auto" in the spec is not changed.
std::vector<Change> changesOf(const spec::Spec &spec);

/// What makes less of a rank lie in the host's memory.
std::vector<Change> hostChangesOf(const spec::Spec &spec);

/// The same ranks, otherwise arranged; each alone, as they exclude each other.
std::vector<Change> otherMeshes(const spec::Spec &spec);

} // namespace meshwork::driver
