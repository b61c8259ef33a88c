// Keys of what a run meets on a machine.
#include "lib/Cost/KeyMakers.h"

namespace meshwork::cost {

void addRunKeys(std::vector<Key> &keys) {
  keys.push_back(
      numberBeside(1, "experts.load", 1, 1e6, "times the mean rank's rows",
                   [](Machine &m) -> double & { return m.expertLoad; }));
  keys.push_back(
      numberBeside(0, "failures.hours", 1e-3, 1e9, "hours",
                   [](Machine &m) -> double & { return m.failureHours; }));
  keys.push_back(
      numberBeside(0, "failures.restart", 0, 1e6, "seconds",
                   [](Machine &m) -> double & { return m.restart; }));
  keys.push_back(
      numberBeside(0, "storage.bandwidth", 1e3, 1e18, "bytes a second",
                   [](Machine &m) -> double & { return m.storage; }));
}

} // namespace meshwork::cost
