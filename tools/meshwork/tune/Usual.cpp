#include "tools/meshwork/tune/Usual.h"

#include <algorithm>

namespace meshwork::tune {

void Usual::start(std::vector<Space::Usual> all) {
  for (Space::Usual &one : all) {
    found.usual.push_back({one.name, std::nullopt, ""});
    if (one.choices.empty())
      found.usual.back().why = "outside of what --axis and --fixed leave";
    left.push_back(std::move(one.choices));
    tryNext(left.size() - 1);
  }
}

/// The first choice that is left, if a spec may say it. What is too large by
/// its bound is left out while another one may fit.
void Usual::tryNext(size_t which) {
  std::vector<Choice> &choices = left[which];
  while (!choices.empty()) {
    Choice choice = choices.front();
    choices.erase(choices.begin());
    if (!use.mayFit(choice) &&
        std::any_of(choices.begin(), choices.end(), use.mayFit))
      continue;
    std::string why = use.start(which, choice);
    if (why.empty()) {
      started.push_back(choice);
      return;
    }
    if (!found.usual[which].row)
      found.usual[which].why = why;
  }
}

/// The first that fits counts, else the one that needs least.
void Usual::note(size_t which, const Row &row) {
  UsualRow &usual = found.usual[which];
  bool isDone = row.costed.status == Costed::done;
  if (isDone && (!usual.row || found.isBetter(row, *usual.row)))
    usual.row = row;
  else if (!isDone && !usual.row)
    usual.why = row.costed.why;
  if (!isDone || !found.fits(row.costed))
    tryNext(which);
}

bool Usual::has(const Choice &choice) const {
  return std::find(started.begin(), started.end(), choice) != started.end();
}

} // namespace meshwork::tune
