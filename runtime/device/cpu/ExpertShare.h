// Which rows are whose, and which thread does what, of products of experts.
//
//   ExpertRows rows{begins, experts, all};
//   auto workOf = [](const Expert &e) { return Work{...}; };
//   ExpertShare share(rows, workOf); // which it borrows, as it does the rows
//   share.forEach(thread, threads, [&](const Expert &e, int64_t panel,
//                                      int64_t begin, int64_t end) { ... });
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/functional/function_ref.h"

namespace meshwork::runtime::cpu {

/// Rows [first, first + count) are of expert `number`.
struct Expert {
  int64_t number = 0, first = 0, count = 0;
};

/// What `begins` of a plan means, whatever it holds: experts' rows never meet
/// and never leave [0, rows).
struct ExpertRows {
  const int32_t *begins; // one more than experts
  int64_t experts, rows;

  int64_t clamped(int64_t index, int64_t least) const {
    return std::clamp<int64_t>(begins[index], least, rows);
  }
  void forEach(absl::FunctionRef<void(const Expert &)> visit) const;
  /// The rows before all experts', and those behind.
  int64_t first() const { return clamped(0, 0); }
  int64_t end() const;
};

/// Of one expert: panels of lines, each line as much work as another, and what
/// a panel costs beside, in any unit.
struct Work {
  int64_t panels = 0, lines = 0;
  double ofLine = 0, ofPanel = 0;
};

/// Gives each thread as much work, in as few panels as possible. A thread's
/// lines are those between two points of the sum of all work, so one large
/// expert leaves no thread idle.
class ExpertShare {
public:
  using WorkOf = absl::FunctionRef<Work(const Expert &)>;
  using Visit = absl::FunctionRef<void(const Expert &, int64_t panel,
                                       int64_t begin, int64_t end)>;

  ExpertShare(const ExpertRows &rows, WorkOf workOf);
  /// Visits lines [begin, end) of panels, those of thread `part` of `parts`.
  void forEach(int64_t part, int64_t parts, Visit visit) const;

private:
  const ExpertRows &rows;
  WorkOf workOf;
  double all = 0;
};

} // namespace meshwork::runtime::cpu
