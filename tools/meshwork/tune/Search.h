// Best first: the choice with the least bound is compiled next, until no bound
// is below the best that was found. So that is the best of all.
#pragma once

#include "tools/meshwork/tune/Bound.h"
#include "tools/meshwork/tune/Cache.h"
#include "tools/meshwork/tune/Costed.h"
#include "tools/meshwork/tune/Space.h"

#include <optional>

namespace meshwork::tune {

/// A choice that was compiled.
struct Row {
  Choice choice;
  Costed costed;
  double bound = 0, boundOfBytes = 0; // seconds, bytes
  std::optional<double> measured; // seconds, by --measure; 0: it did not run
  std::string whyUnmeasured;
};

/// A usual choice, and why it has no row.
struct UsualRow {
  std::string name;
  std::optional<Row> row;
  std::string why;
};

struct Found {
  std::vector<Row> rows;      // that fit, the fastest first
  std::optional<Row> nearest; // where none fits: what needs least
  std::vector<UsualRow> usual;
  std::map<std::string, size_t> refused; // choices, by the first error
  std::vector<std::string> broken;       // faults of the compiler
  size_t choices = 0, tooLarge = 0, tooSlow = 0, compiled = 0, bodies = 0,
         sketches = 0;
  size_t cached = 0; // of what was compiled: known from an earlier search
  /// Seconds that no choice is faster than: the least bound of all that were
  /// not compiled, or the best.
  double bound = 0;
  uint64_t limit = 0; // bytes of a rank; 0: nothing says it
  std::string limitFrom;
  bool isInterrupted = false;
};

struct SearchOptions {
  uint32_t ranks = 1, global = 1;
  double within = 0;
  size_t processes = 1;
};

/// Says how far it is on stderr, if that is a terminal. Ctrl-C ends it with
/// what was found.
Found search(Specs &specs, const Facts &facts, const AxisSizes &axes,
             const SearchOptions &options, Cache &cache);

} // namespace meshwork::tune
