// What a choice that was compiled, or its sketch, tells of others. They differ
// in the method of the context, its layout and, without ZeRO-3, in recompute.
// They have a body of their own, and the same pipeline and copies of the
// weights.
#pragma once

#include "tools/meshwork/tune/Body.h"

#include <map>
#include <optional>
#include <vector>

namespace meshwork::tune {

class Kin {
public:
  /// Of a choice that was sketched or compiled.
  ///   beyond  seconds that it takes beyond what its body tells
  void noteSlower(const Choice &choice, double beyond);
  void noteTooLarge(const Choice &choice, const Body &body);

  /// Seconds beyond what its body tells, at least.
  double beyond(const Choice &choice) const;
  /// Whether its body keeps as much as one of kin that is too large.
  bool isTooLarge(const Choice &choice, const Body &body) const;

private:
  struct Told {
    std::optional<double> beyond; // the least
    std::vector<Body> tooLarge;
  };
  const Told *find(const Choice &choice) const;
  std::map<Choice, Told> known; // but for those
};

} // namespace meshwork::tune
