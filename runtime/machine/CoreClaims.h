// Cores of this machine that a run pins its threads to, and no other run.
#pragma once

#include "runtime/io/Files.h"
#include "runtime/machine/Cpus.h"
#include <vector>

namespace meshwork::runtime {

/// A core is claimed by a name in the abstract namespace of sockets, which the
/// kernel takes back when the process ends, however it does. Runs in another
/// network namespace (most containers) are not seen.
class CoreClaims {
public:
  /// All of `cpus` or none; false when another process, or another object, has
  /// one of them.
  bool claim(const std::vector<int> &cpus);

  /// As shareCores. Of cores that are pinned to, this has claimed each: where
  /// others have some, as many free ones are taken, and where those are too few
  /// nobody is pinned.
  std::vector<CoreShare> share(const std::vector<int> &cpus, uint32_t ranks,
                               int threads, bool pin);

  /// Whether `share` has left threads unpinned for want of free cores.
  bool areTooFew() const { return tooFew; }

private:
  std::vector<FileDescriptor> held;
  bool tooFew = false;
};

/// All cores that are pinned to, rank by rank; empty where nobody is.
std::vector<int> pinnedCpus(const std::vector<CoreShare> &shares);

} // namespace meshwork::runtime
