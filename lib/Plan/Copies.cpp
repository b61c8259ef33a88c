#include "lib/Plan/Copies.h"
#include "lib/Plan/CopyPool.h"
#include <algorithm>
#include <map>

namespace meshwork::plan {
namespace {

/// The copies of one class, while the table is walked.
class Pool {
public:
  explicit Pool(const CopyClass &of) : of(of), free(of.copies) {}

  /// The copy that the microbatch has in this action, 0 where it has none.
  uint32_t visit(const Action &action) {
    uint32_t m = action.microbatch();
    // More are never alive than Lives counted.
    if (of.copies > 1 && action.list() == of.firstList && !free.isEmpty())
      held[m] = free.take();
    auto found = held.find(m);
    uint32_t copy = found == held.end() ? 0 : found->second;
    if (found != held.end() && action.list() == of.lastList) {
      free.giveBack(copy);
      held.erase(found);
    }
    return copy;
  }

private:
  CopyClass of;
  CopyPool free;
  std::map<uint32_t, uint32_t> held; // the copy of a microbatch
};
} // namespace

Copies::Copies(const ActionTable &table, std::vector<CopyClass> classes) {
  if (std::all_of(classes.begin(), classes.end(),
                  [](const CopyClass &of) { return of.copies <= 1; }))
    return;
  std::vector<Pool> pools(classes.begin(), classes.end());
  choices.resize(table.lists().size());
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, uint32_t> known;
  for (const Action &action : table.actions()) {
    std::vector<uint32_t> choice(classes.size(), 0);
    if (isOfMicrobatch(table.lists()[action.list()].kind))
      for (size_t i = 0; i < pools.size(); ++i)
        choice[i] = pools[i].visit(action);
    auto &ofList = choices[action.list()];
    auto [at, isNew] = known.try_emplace({action.list(), choice},
                                         static_cast<uint32_t>(ofList.size()));
    if (isNew)
      ofList.push_back(std::move(choice));
    ofAction.push_back(at->second);
  }
  for (auto &ofList : choices) // `once` runs in no action.
    if (ofList.empty())
      ofList.emplace_back(classes.size(), 0);
}

} // namespace meshwork::plan
