#include "lib/Plan/Copies.h"
#include "lib/Plan/CopyPool.h"
#include <algorithm>
#include <map>

namespace meshwork::plan {
namespace {

/// The copies of one class, while the table is walked.
class Pool {
public:
  explicit Pool(const CopyClass &of)
      : walk(of), isOne(of.copies <= 1), free(of.copies) {}

  /// The copy that the microbatch has in this action, 0 where it has none.
  uint32_t visit(const Action &action) {
    if (isOne)
      return 0;
    uint32_t m = action.microbatch();
    LifeWalk::Ends ends = walk.visit(action);
    // More are never alive than Lives counted.
    if (ends.first && !free.isEmpty())
      held[m] = free.take();
    auto found = held.find(m);
    uint32_t copy = found == held.end() ? 0 : found->second;
    if (found != held.end() && ends.last) {
      free.giveBack(copy);
      held.erase(found);
    }
    return copy;
  }

private:
  LifeWalk walk;
  bool isOne;
  CopyPool free;
  std::map<uint32_t, uint32_t> held; // the copy of a microbatch
};
} // namespace

LifeWalk::Ends LifeWalk::visit(const Action &action) {
  uint32_t list = action.list(), m = action.microbatch();
  if (of.lists.empty())
    return {list == of.firstList, list == of.lastList};
  if (!std::binary_search(of.lists.begin(), of.lists.end(), list))
    return {false, false};
  size_t count = ++seen[m];
  bool isLast = count == of.lists.size();
  if (isLast)
    seen.erase(m);
  return {count == 1, isLast};
}

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
