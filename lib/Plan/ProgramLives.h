// The lists, actions and lives of a plan's program: lib/Plan asked about it.
#pragma once

#include "lib/Plan/Lives.h"
#include "lib/Plan/Transfers.h"
#include "lib/Plan/Views.h"

namespace meshwork::plan {

/// The instructions of a list, by its number.
const Instructions &listOf(const Program &program, uint32_t list);

/// What repeats in a list; the check has passed.
Repeats repeatsOf(const Program &program, uint32_t list);

/// Lists and actions; the check has passed.
ActionTable tableOf(const Program &program);

/// When the program's buffers live, by their number. What an instruction on
/// a channel uses is touched where it starts and where it is waited for.
/// `table` outlives the result.
Lives livesOf(const Program &program, const ActionTable &table);

/// The instruction of a list that sends or receives.
struct TransferOf {
  const flatbuffers::Vector<uint32_t> *parts;
  uint32_t axis, peer;
};
TransferOf transferOf(const Program &program, uint32_t list);

/// Which transfers each action waits for.
Transfers transfersOf(const Program &program, const ActionTable &table,
                      const Lives &lives);

/// By list and instruction. An instruction that adds up over a step sets its
/// buffer in this action: the first one of all lists that add to the buffer.
/// Other instructions have ActionTable::none.
std::vector<std::vector<uint32_t>> settingActions(const Program &program,
                                                  const ActionTable &table);

} // namespace meshwork::plan
