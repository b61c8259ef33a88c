// What the update reads of weights and optimizer states. Each read says whether
// it means the value that the step found or the one that the update makes. Both
// lie in the same bytes, so only the order tells which it gets.
#include "absl/container/flat_hash_map.h"
#include "lib/Plan/Look.h"
#include "lib/Plan/Overlap.h"
#include "lib/Plan/PlanCheckInternal.h"

namespace meshwork::plan {
namespace {

struct Written {
  uint32_t view, instruction;
};

/// The list of the last action, which alone changes what outlives a step.
class Update {
public:
  explicit Update(const ProgramCheck &check)
      : check(check), section(check.last()), list(*section.list) {
    for (uint32_t i = 0; i < list.size(); ++i)
      forEachOperand(*list.Get(i), [&](const Operand &operand) {
        if (operand.written && isState(operand.view))
          written[check.views[operand.view].buffer].push_back(
              {operand.view, i});
      });
  }

  absl::Status run() const {
    absl::Status status;
    for (uint32_t i = 0; i < list.size() && status.ok(); ++i)
      forEachOperand(*list.Get(i), [&](const Operand &operand) {
        if (status.ok() && operand.read && isState(operand.view))
          status = look(operand, i);
      });
    return status;
  }

private:
  bool isState(uint32_t view) const {
    return outlivesStep(check.bufferOf(check.views[view]));
  }

  /// Whether the read gets what it means. The instruction's own write comes
  /// behind its reads; a gather writes its own block with what it read there.
  absl::Status look(const Operand &operand, uint32_t at) const {
    const ViewInfo &view = check.views[operand.view];
    uint32_t before = 0;
    auto found = written.find(view.buffer);
    if (found == written.end())
      return view.updated ? missing(operand, at) : absl::OkStatus();
    for (const Written &one : found->second) {
      if (one.instruction == at || !mayShareBytes(view, check.views[one.view]))
        continue;
      if (view.updated != (one.instruction < at))
        return wrong(operand, at, one.instruction);
      ++before;
    }
    return view.updated && before == 0 ? missing(operand, at)
                                       : absl::OkStatus();
  }

  std::string reads(const Operand &operand, uint32_t at) const {
    const ViewInfo &view = check.views[operand.view];
    return absl::StrCat(section.where(at), " reads ", operand.role, " in ",
                        quote(check.bufferOf(view).name()), " as ",
                        view.updated ? "the update leaves it"
                                     : "the step finds it");
  }

  absl::Status wrong(const Operand &operand, uint32_t at,
                     uint32_t writer) const {
    return bad(reads(operand, at), ", ", writer < at ? "after " : "before ",
               section.where(writer), " writes there");
  }

  absl::Status missing(const Operand &operand, uint32_t at) const {
    return bad(reads(operand, at), ", and nothing has written there");
  }

  const ProgramCheck &check;
  const Section &section;
  const Instructions &list;
  absl::flat_hash_map<uint32_t, std::vector<Written>> written; // by buffer
};

/// Only the update leaves something, and only of what outlives the step.
absl::Status checkMayBeUpdated(const ProgramCheck &check,
                               const Section &section, uint32_t at,
                               const Operand &operand) {
  const ViewInfo &view = check.views[operand.view];
  const Buffer &buffer = check.bufferOf(view);
  if (!view.updated || !operand.read ||
      (&section == &check.last() && outlivesStep(buffer)))
    return absl::OkStatus();
  return bad(section.where(at), " reads ", operand.role, " in ",
             quote(buffer.name()),
             " as the update leaves it, expected that of weights and optimizer "
             "states, in ",
             check.last().name, " alone");
}

absl::Status checkReadsOfUpdated(const ProgramCheck &check) {
  absl::Status status;
  for (const Section &section : check.sections)
    for (uint32_t i = 0; i < section.list->size() && status.ok(); ++i)
      forEachOperand(*section.list->Get(i), [&](const Operand &operand) {
        if (status.ok())
          status = checkMayBeUpdated(check, section, i, operand);
      });
  return status;
}
} // namespace

absl::Status checkUpdates(const ProgramCheck &check) {
  MESHWORK_RETURN_IF_ERROR(checkReadsOfUpdated(check));
  return Update(check).run();
}

} // namespace meshwork::plan
