// What everybody tries first. Each usual one is a list of choices, of which the
// first that fits counts: Megatron's defaults with as few stages as fit.
#pragma once

#include "tools/meshwork/tune/Found.h"
#include "tools/meshwork/tune/Space.h"

#include <functional>
#include <vector>

namespace meshwork::tune {

class Usual {
public:
  struct Use {
    /// Whether a choice may fit, before it is compiled.
    std::function<bool(const Choice &)> mayFit;
    /// Compiles a choice of that usual one. Says why it does not; empty: it
    /// does.
    std::function<std::string(size_t which, const Choice &)> start;
  };
  /// `found.usual` gets the rows.
  Usual(Found &found, Use use) : found(found), use(std::move(use)) {}

  void start(std::vector<Space::Usual> all);
  /// Of a choice that was started and is compiled now.
  void note(size_t which, const Row &row);
  /// Whether it was started.
  bool has(const Choice &choice) const;

private:
  void tryNext(size_t which);

  Found &found;
  Use use;
  std::vector<std::vector<Choice>> left; // of each usual one
  std::vector<Choice> started;
};

} // namespace meshwork::tune
