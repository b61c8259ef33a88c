// The order of a step: a table of actions, each of which runs one list of
// instructions, and what follows from it. Stands beside the plan's format, so
// that the compiler, the check of a plan, `explain` and the executors agree.
//
//   ActionTable table(listsOf(program), actionsOf(program));
//   table.isLast(3);      // is it the last of its list in this step?
//   table.firstOf(2);     // the action that runs list 2 first
#pragma once

#include "meshwork/Plan/Plan.h"
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace meshwork::plan {

/// A list as far as order goes.
struct ListShape {
  ListKind kind;
  uint32_t stage = 0; // virtual
  uint32_t size = 0;  // instructions
};

/// Whether a list of this kind runs for each microbatch.
bool isOfMicrobatch(ListKind kind);

/// Whether a list of this kind sends to, or receives from, another rank.
bool sends(ListKind kind);
bool receives(ListKind kind);

/// Whether the runtime writes an input of this kind when a microbatch begins.
bool isOfMicrobatch(InputKind kind);

/// "forward"; of another stage than the first "forward of stage 2".
std::string nameOf(const ListShape &list);

/// "0F3", "1RECV_B3": as action lists are written for people, stage, kind,
/// microbatch. "step" and "update" for what no stage does.
std::string textOf(const ListShape &list, uint32_t microbatch);

class ActionTable {
public:
  static constexpr uint32_t none = UINT32_MAX;

  /// What is wrong with a table, or "". Wrong are lists of kinds and stages
  /// that this version does not run, and lists that run too often, too seldom
  /// or out of order. Lists run in the order in which they stand. Only
  /// weight_grad may run later than the lists behind it. Takes time in
  /// proportion to the actions.
  static std::string problem(std::span<const ListShape> lists,
                             std::span<const Action> actions,
                             uint64_t microbatches);

  /// Every action names a list that is there and is not `once`.
  ActionTable(std::vector<ListShape> lists, std::vector<Action> actions);

  const std::vector<ListShape> &lists() const { return all; }
  const std::vector<Action> &actions() const { return table; }
  /// The list that runs before the first step; none when there is none.
  uint32_t onceList() const { return once; }
  /// The list that the last action runs; none when there are no actions.
  uint32_t lastList() const {
    return table.empty() ? none : table.back().list();
  }

  /// Times that a list runs in a step.
  uint32_t runsOf(uint32_t list) const { return runs[list]; }
  /// The action that runs the list first, or last; none when it never runs.
  uint32_t firstOf(uint32_t list) const { return first[list]; }
  uint32_t lastOf(uint32_t list) const { return last[list]; }
  bool isLast(uint32_t action) const {
    return last[table[action].list()] == action;
  }
  /// Whether the runtime puts a microbatch's tokens in place before it.
  bool beginsMicrobatch(uint32_t action) const { return begins[action]; }

private:
  std::vector<ListShape> all;
  std::vector<Action> table;
  uint32_t once = none;
  std::vector<uint32_t> runs, first, last; // by list
  std::vector<bool> begins;                // by action
};

/// The lists and actions of a program, empty where it has none.
std::vector<ListShape> listsOf(const Program &program);
std::span<const Action> actionsOf(const Program &program);

} // namespace meshwork::plan
