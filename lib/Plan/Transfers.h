// Which transfers between stages an action waits for. A Send or Receive is
// started by its action and outlives it; the next action that could disturb it
// waits:
//
//   Transfers transfers(table, copies, uses);
//   for (uint32_t earlier : transfers.awaitedBy(action))
//     waitFor(earlier);   // an action of a list that sends or receives
//
// Disturbs a Send who writes the same copy of a buffer that it reads, and a
// Receive who touches what it writes. What does not run for a microbatch, so
// the update, waits for all: nothing outlives a step.
#pragma once

#include "lib/Plan/Copies.h"
#include <cstdint>
#include <span>
#include <vector>

namespace meshwork::plan {

/// A list's use of a buffer that some transfer reads or writes. A buffer may be
/// named several times.
struct TransferUse {
  uint32_t list, buffer;
  uint32_t group; // Lives::groupOf, where the buffer has copies
  bool hasCopies;
  bool written;
};

class Transfers {
public:
  /// Of a program without any.
  Transfers() = default;
  /// Takes time in proportion to the actions and the uses of their lists.
  Transfers(const ActionTable &table, const Copies &copies,
            const std::vector<TransferUse> &uses);

  /// Actions that must have ended before this one begins, in order; each is in
  /// one such list.
  std::span<const uint32_t> awaitedBy(uint32_t action) const {
    return action < awaited.size() ? std::span<const uint32_t>(awaited[action])
                                   : std::span<const uint32_t>();
  }

private:
  std::vector<std::vector<uint32_t>> awaited; // by action
};

} // namespace meshwork::plan
