// The way of one run through a list: where counted repeats end early, past the
// turns that they leave out.
//
//   Way way(program, list);
//   while (std::optional<ListRun> part = *way.next(read))
//     run(*part);                       // nothing is under way in channels
#pragma once

#include "runtime/machine/Executor.h"

namespace meshwork::runtime {

/// Whether channels count anew at a place of a list's turns: nothing that was
/// started before is under way.
inline bool countsAnew(const std::vector<plan::Turn> &turns, uint32_t at) {
  return at == 0 || turns[at - 1].isGate();
}

class Way {
public:
  /// `program` outlives it.
  Way(const RankProgram &program, const ListRun &list);

  /// As Executor::read.
  using Read =
      absl::FunctionRef<absl::Status(uint64_t place, absl::Span<std::byte>)>;
  /// The next part, without a gate in it; none: the end. dataLoss when a count
  /// is none of those that its repeat may run.
  absl::StatusOr<std::optional<ListRun>> next(Read read);

private:
  absl::Status passGates(Read read);
  absl::StatusOr<int32_t> readCount(const plan::Turn &gate, Read read) const;

  const RankProgram &program;
  const std::vector<plan::Turn> &turns;
  ListRun list; // what is left of it
  plan::Gates gates;
};

} // namespace meshwork::runtime
