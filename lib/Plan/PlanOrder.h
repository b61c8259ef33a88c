// What each program of a plan does in which order, as far as ranks meet in it:
// for the check that they do (PlanCheckOrder.cpp).
#pragma once

#include "lib/Plan/ProgramLives.h"
#include "lib/Plan/Representatives.h"
#include "lib/Plan/Transfers.h"
#include <map>

namespace meshwork::plan {

/// One program.
struct ProgramOrder {
  const Program &program;
  ActionTable table;
  Transfers transfers;
  /// Those that are rehearsed: all, or the first of each list where nothing
  /// else differs from one to the next.
  std::vector<uint32_t> actions = {};
  bool oncePerList = false;
  /// By list, one behind the other with all turns, of counted repeats the most:
  /// instructions that are collectives, waits or started on a channel, and
  /// gates of counted repeats. None where no other program takes part.
  std::vector<std::vector<uint32_t>> events = {};
  // By list: its microbatches, in order; and lists by what they are.
  std::vector<std::vector<uint32_t>> microbatches = {};
  std::map<std::pair<ListKind, uint64_t>, uint32_t> numbers = {};

  std::span<const Action> all() const { return table.actions(); }
  const ListShape &listOf(uint32_t action) const {
    return table.lists()[table.actions()[action].list()];
  }
  /// "0SEND_F3": an action.
  std::string textOf(uint32_t action) const {
    return plan::textOf(listOf(action), table.actions()[action].microbatch());
  }
};

/// A plan's programs, by number.
struct PlanOrder {
  const Plan &plan;
  Representatives ranks;
  std::vector<ProgramOrder> programs;

  const ProgramOrder &of(uint32_t rank) const {
    return programs[ranks.programNumber(rank)];
  }
};

/// The other side of a list that sends or receives.
struct Counterpart {
  ListKind kind;
  uint64_t stage; // UINT64_MAX: none
};
Counterpart counterpartOf(const ListShape &list);

/// Every send has its receive, of the same parts and in the same order of
/// microbatches.
absl::Status checkPairs(const PlanOrder &order);

/// Runs the actions of all representatives: each waits where it must, and all
/// come to their end.
absl::Status rehearse(const PlanOrder &order);

} // namespace meshwork::plan
