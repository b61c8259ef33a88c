#include "runtime/device/cpu/ExpertShare.h"

#include "runtime/device/cpu/Operation.h"

namespace meshwork::runtime::cpu {
namespace {

/// Threads part at multiples of so many lines: whole tiles, of either kind.
constexpr int64_t grain = 24;

/// How many lines of a panel lie before `position`, a point of all work.
int64_t linesBefore(double position, double panel, const Work &work) {
  double lines = (position - panel - work.ofPanel) / work.ofLine;
  if (lines <= 0)
    return 0;
  if (lines >= static_cast<double>(work.lines))
    return work.lines;
  return std::min(ceilDiv(static_cast<int64_t>(lines), grain) * grain,
                  work.lines);
}
} // namespace

void ExpertRows::forEach(absl::FunctionRef<void(const Expert &)> visit) const {
  int64_t begin = first();
  for (int64_t number = 0; number < experts; ++number) {
    int64_t end = clamped(number + 1, begin);
    visit({number, begin, end - begin});
    begin = end;
  }
}

int64_t ExpertRows::end() const {
  int64_t end = first();
  for (int64_t number = 0; number < experts; ++number)
    end = clamped(number + 1, end);
  return end;
}

// Sums of work are of doubles: a plan's sizes may be any, and all threads round
// them alike.
ExpertShare::ExpertShare(const ExpertRows &rows, WorkOf workOf)
    : rows(rows), workOf(workOf) {
  rows.forEach([&](const Expert &expert) {
    Work work = workOf(expert);
    all += static_cast<double>(work.panels) *
           (work.ofPanel + static_cast<double>(work.lines) * work.ofLine);
  });
}

void ExpertShare::forEach(int64_t part, int64_t parts, Visit visit) const {
  auto pointOf = [&](int64_t i) {
    return i == parts ? 2 * all + 1 : all * static_cast<double>(i) / parts;
  };
  double from = pointOf(part), to = pointOf(part + 1), panelAt = 0;
  rows.forEach([&](const Expert &expert) {
    Work work = workOf(expert);
    double ofAll = work.ofPanel + static_cast<double>(work.lines) * work.ofLine;
    for (int64_t panel = 0; panel < work.panels; ++panel, panelAt += ofAll) {
      if (panelAt + ofAll < from || panelAt >= to)
        continue;
      int64_t begin = linesBefore(from, panelAt, work),
              end = linesBefore(to, panelAt, work);
      if (begin < end)
        visit(expert, panel, begin, end);
    }
  });
}

} // namespace meshwork::runtime::cpu
