#include "lib/Plan/Transfers.h"
#include <algorithm>
#include <map>
#include <set>

namespace meshwork::plan {
namespace {

/// The transfers under way, while the table is walked.
class UnderWay {
public:
  UnderWay(const ActionTable &table, const Copies &copies,
           const std::vector<TransferUse> &uses)
      : table(table), copies(copies), byList(table.lists().size()) {
    for (const TransferUse &use : uses)
      byList[use.list].push_back(use);
  }

  /// What the action waits for; it is under way itself after that.
  std::vector<uint32_t> visit(uint32_t action) {
    uint32_t list = table.actions()[action].list();
    if (!isOfMicrobatch(table.lists()[list].kind))
      return finish(std::exchange(open, {}));
    std::set<uint32_t> found;
    for (const TransferUse &use : byList[list])
      for (uint32_t other : touching[placeOf(action, use)])
        if (use.written || receives(kindOf(other)))
          found.insert(other);
    std::vector<uint32_t> ended = finish(found);
    if (sends(kindOf(action)) || receives(kindOf(action)))
      start(action);
    return ended;
  }

private:
  using Place = std::pair<uint32_t, uint32_t>; // buffer and copy

  ListKind kindOf(uint32_t action) const {
    return table.lists()[table.actions()[action].list()].kind;
  }
  Place placeOf(uint32_t action, const TransferUse &use) const {
    return {use.buffer,
            use.hasCopies
                ? copies.copyOf(use.list, copies.variantOf(action), use.group)
                : 0};
  }

  void start(uint32_t action) {
    open.insert(action);
    for (const TransferUse &use : byList[table.actions()[action].list()])
      touching[placeOf(action, use)].insert(action);
  }

  std::vector<uint32_t> finish(const std::set<uint32_t> &actions) {
    for (uint32_t action : actions) {
      open.erase(action);
      for (const TransferUse &use : byList[table.actions()[action].list()])
        touching[placeOf(action, use)].erase(action);
    }
    return {actions.begin(), actions.end()};
  }

  const ActionTable &table;
  const Copies &copies;
  std::vector<std::vector<TransferUse>> byList;
  std::set<uint32_t> open;
  std::map<Place, std::set<uint32_t>> touching;
};
} // namespace

Transfers::Transfers(const ActionTable &table, const Copies &copies,
                     const std::vector<TransferUse> &uses) {
  if (uses.empty())
    return;
  UnderWay underWay(table, copies, uses);
  for (uint32_t action = 0; action < table.actions().size(); ++action)
    awaited.push_back(underWay.visit(action));
}

} // namespace meshwork::plan
