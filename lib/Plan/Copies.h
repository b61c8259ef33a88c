// Which copy of a buffer an action uses, where several microbatches are under
// way at once: the intervals of the table of actions, coloured.
//
//   Copies copies = lives.copies();
//   copies.variantsOf(list);              // the list is bound once for each
//   uint32_t v = copies.variantOf(action);
//   copies.copyOf(list, v, group);        // 0 where there is one copy
//
// A microbatch takes the lowest copy that is free when its life begins and
// gives it back when it ends (CopyPool.h). So there are never more copies than
// are alive at once (Lives::copiesOf), whatever the order of the table.
#pragma once

#include "lib/Plan/Actions.h"
#include <map>
#include <vector>

namespace meshwork::plan {

/// Buffers that live from one list to a later one of the same microbatch.
struct CopyClass {
  uint32_t firstList, lastList;
  uint32_t copies; // alive at once
  /// All lists that touch them, ascending, where a list of weight_grad is one
  /// of them and others may run before or after it; else none.
  std::vector<uint32_t> lists;
};

/// Where the lives of a class begin and end, while the table is walked.
class LifeWalk {
public:
  explicit LifeWalk(CopyClass of) : of(std::move(of)) {}
  struct Ends {
    bool first, last;
  };
  /// What an action of a microbatch is to that microbatch's life.
  Ends visit(const Action &action);

private:
  CopyClass of;
  std::map<uint32_t, size_t> seen; // lists that ran, by microbatch
};

class Copies {
public:
  /// One of everything.
  Copies() = default;
  /// Classes of one copy cost nothing; others time in proportion to the
  /// actions.
  Copies(const ActionTable &table, std::vector<CopyClass> classes);

  /// How many choices of copies actions run the list with, at least 1.
  uint32_t variantsOf(uint32_t list) const {
    return choices.empty() ? 1 : static_cast<uint32_t>(choices[list].size());
  }
  /// Of the action's list; 0 of ActionTable::none.
  uint32_t variantOf(uint32_t action) const {
    return action < ofAction.size() ? ofAction[action] : 0;
  }
  /// The copy of the class's buffers; `index` is into the constructor's list.
  uint32_t copyOf(uint32_t list, uint32_t variant, uint32_t index) const {
    return choices.empty() ? 0 : choices[list][variant][index];
  }

private:
  std::vector<uint32_t> ofAction; // variants
  /// By list and variant: the copy of each class.
  std::vector<std::vector<std::vector<uint32_t>>> choices;
};

/// From one copy to the next, and what one has.
inline uint64_t bytesOfCopy(const Buffer &buffer) {
  return buffer.copies() > 1 ? buffer.size_bytes() / buffer.copies()
                             : buffer.size_bytes();
}

} // namespace meshwork::plan
