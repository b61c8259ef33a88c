// What a search found.
#pragma once

#include "tools/meshwork/driver/search/Better.h"
#include "tools/meshwork/tune/Choice.h"
#include "tools/meshwork/tune/Costed.h"
#include "tools/meshwork/tune/Fixed.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

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
  Reasons unused; // keys of --fixed that no spec may have
  size_t choices = 0, tooLarge = 0, tooSlow = 0, compiled = 0, bodies = 0,
         sketches = 0;
  size_t cached = 0; // of what was compiled: known from an earlier search
  /// Seconds that no choice is faster than: the least bound of all that were
  /// not compiled, or the best.
  double bound = 0;
  uint64_t limit = 0; // bytes of a rank; 0: nothing says it
  std::string limitFrom;
  bool isInterrupted = false;

  bool fits(const Costed &costed) const {
    return limit == 0 || costed.bytes <= limit;
  }
  /// Of equal ones the first choice, whichever was compiled first.
  bool isBetter(const Row &a, const Row &b) const {
    auto beats = [&](const Row &one, const Row &other) {
      return driver::isBetter(one.costed, other.costed,
                              limit == 0 ? std::nullopt : std::optional(limit));
    };
    return beats(a, b) || (!beats(b, a) && a.choice < b.choice);
  }
};

} // namespace meshwork::tune
