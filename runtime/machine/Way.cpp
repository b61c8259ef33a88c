#include "runtime/machine/Way.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include <algorithm>

namespace meshwork::runtime {

Way::Way(const RankProgram &program, const ListRun &given)
    : program(program), turns(program.turns[given.list]), list(given) {
  list.end = std::min(list.end, static_cast<uint32_t>(turns.size()));
}

absl::StatusOr<std::optional<ListRun>> Way::next(Read read) {
  MESHWORK_RETURN_IF_ERROR(passGates(read));
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

absl::Status Way::passGates(Read read) {
  while (list.begin < list.end && turns[list.begin].isGate()) {
    absl::StatusOr<uint32_t> to =
        gates.pass(turns, list.begin, [&](const plan::Turn &gate) {
          return readCount(gate, read);
        });
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

absl::StatusOr<int32_t> Way::readCount(const plan::Turn &gate,
                                       Read read) const {
  uint32_t view = plan::listOf(program.program, list.list)
                      .Get(gate.instruction)
                      ->op_as_Repeat()
                      ->count();
  Where where{list.list, program.copies.variantOf(list.action), gate.turns};
  int32_t count = 0;
  MESHWORK_RETURN_IF_ERROR(
      read(program.placeIn(where, view),
           {reinterpret_cast<std::byte *>(&count), sizeof(count)}));
  return count;
}

} // namespace meshwork::runtime
