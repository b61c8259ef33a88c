#include "runtime/machine/Way.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include <algorithm>

namespace meshwork::runtime {
namespace {

class Way {
public:
  /// All of these outlive it.
  Way(const RankProgram &program, const ListRun &list, Executor &executor,
      KnownCounts &known);
  /// The next part; none: the end.
  absl::StatusOr<std::optional<ListRun>> next();

private:
  absl::Status passGates();
  absl::StatusOr<int32_t> countAt(const plan::Turn &gate) const;
  absl::StatusOr<int32_t> read(const plan::Turn &gate, uint32_t view) const;

  const RankProgram &program;
  Executor &executor;
  KnownCounts &known;
  const std::vector<plan::Turn> &turns;
  ListRun list; // what is left of it
  plan::Gates gates;
};

Way::Way(const RankProgram &program, const ListRun &given, Executor &executor,
         KnownCounts &known)
    : program(program), executor(executor), known(known),
      turns(program.turns[given.list]), list(given) {
  list.end = std::min(list.end, static_cast<uint32_t>(turns.size()));
}

absl::StatusOr<std::optional<ListRun>> Way::next() {
  MESHWORK_RETURN_IF_ERROR(passGates());
  if (list.begin >= list.end)
    return std::nullopt;
  ListRun part = list;
  auto isGate = [](const plan::Turn &turn) { return turn.isGate(); };
  part.end =
      static_cast<uint32_t>(std::find_if(turns.begin() + list.begin,
                                         turns.begin() + list.end, isGate) -
                            turns.begin());
  list.begin = part.end;
  return part;
}

absl::Status Way::passGates() {
  while (list.begin < list.end && turns[list.begin].isGate()) {
    absl::StatusOr<uint32_t> to =
        gates.pass(turns, list.begin,
                   [&](const plan::Turn &gate) { return countAt(gate); });
    if (!to.ok())
      return absl::Status(
          to.status().code(),
          absl::StrCat(
              "rank ", program.rank, ", ",
              program.nameOf(list.list, list.begin), " ",
              plan::quote(program.instruction(list.list, list.begin).name()),
              ": ", to.status().message()));
    list.begin = *to;
  }
  return absl::OkStatus();
}

/// None where nothing inside runs: what counts is then perhaps not made.
absl::StatusOr<int32_t> Way::countAt(const plan::Turn &gate) const {
  if (program.leavesOut(list, list.begin))
    return 0;
  uint32_t view = plan::listOf(program.program, list.list)
                      .Get(gate.instruction)
                      ->op_as_Repeat()
                      ->count();
  if (std::optional<int32_t> count = known.find(list, view))
    return *count;
  return read(gate, view);
}

absl::StatusOr<int32_t> Way::read(const plan::Turn &gate, uint32_t view) const {
  Where where{list.list, program.copies.variantOf(list.action), gate.turns};
  int32_t count = 0;
  MESHWORK_RETURN_IF_ERROR(
      executor.read(program.placeIn(where, view),
                    {reinterpret_cast<std::byte *>(&count), sizeof(count)}));
  known.keep(list, gate, view, count);
  if (count >= 0)
    executor.noteTurns(static_cast<uint32_t>(count));
  return count;
}
} // namespace

absl::Status runParts(const RankProgram &program, const ListRun &list,
                      Executor &executor, KnownCounts &known,
                      absl::FunctionRef<absl::Status(const ListRun &)> run) {
  Way way(program, list, executor, known);
  for (;;) {
    std::optional<ListRun> part;
    MESHWORK_ASSIGN_OR_RETURN(part, way.next());
    if (!part)
      return absl::OkStatus();
    MESHWORK_RETURN_IF_ERROR(run(*part));
  }
}

} // namespace meshwork::runtime
