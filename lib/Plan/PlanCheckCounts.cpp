// Counted repeats: ranks that meet inside run it equally often, or one of them
// would wait for ever. They do where what they read is one number for all: the
// last to write it is an all_reduce with max over every axis along which they
// meet. Where that stands in another list, no third list writes the number, so
// that no order of lists matters. The proof is one of bytes: what makes
// the number is nobody's concern.
#include "lib/Plan/Overlap.h"
#include "lib/Plan/PlanCheckInternal.h"
#include "lib/Plan/Writers.h"

namespace meshwork::plan {
namespace {

/// Axes as bits; those of one rank do not count.
uint32_t axesOf(const Plan &plan, const Collective &op) {
  uint32_t axes = 0;
  for (uint32_t axis : *op.axes())
    if (plan.mesh()->Get(axis)->size() > 1)
      axes |= 1u << axis;
  return axes;
}

std::string axisText(const Plan &plan, uint32_t axes) {
  std::string text;
  for (uint32_t axis = 0; axis < plan.mesh()->size(); ++axis)
    if (axes >> axis & 1)
      absl::StrAppend(&text, text.empty() ? "" : ", ",
                      quote(plan.mesh()->Get(axis)->name()));
  return text;
}

/// One counted repeat of a list.
class Count {
public:
  Count(const ProgramCheck &check, const Section &section, uint32_t at)
      : check(check), section(section), at(at),
        view(check.views[section.list->Get(at)->op_as_Repeat()->count()]) {}

  absl::Status run() const {
    uint32_t needed = axesInside();
    if (needed == 0)
      return absl::OkStatus();
    MESHWORK_RETURN_IF_ERROR(expectNoLater());
    for (uint32_t i = at; i-- > 0;)
      if (writes(i))
        return expectMaximum(section, i, needed, alwaysRuns(i));
    return expectOneElsewhere(needed);
  }

private:
  std::string expected(uint32_t axes) const {
    return absl::StrCat("expected an all_reduce with max over ",
                        axisText(check.plan, axes),
                        ", along which ranks meet inside");
  }

  uint32_t axesInside() const {
    uint32_t axes = 0,
             end =
                 at + 1 + section.list->Get(at)->op_as_Repeat()->instructions();
    for (uint32_t i = at + 1; i < end; ++i)
      if (const Collective *op = section.list->Get(i)->op_as_Collective())
        axes |= axesOf(check.plan, *op);
    return axes;
  }

  bool writes(uint32_t i) const {
    bool found = false;
    forEachOperand(*section.list->Get(i), [&](const Operand &operand) {
      found |=
          operand.written && mayShareBytes(check.views[operand.view], view);
    });
    return found;
  }

  /// In a repeat around it, what stands behind comes before the next turn.
  absl::Status expectNoLater() const {
    std::vector<RepeatShape> around = section.repeats.around(at);
    uint32_t end = around.empty() ? at : around.front().end;
    for (uint32_t i = at + 1; i < end; ++i)
      if (writes(i))
        return bad(section.where(i), " writes its count behind it, in a repeat "
                                     "around it; expected it only in front");
    return absl::OkStatus();
  }

  /// Whether instruction `i` runs whenever the repeat does: what is around it
  /// is around the repeat too.
  bool alwaysRuns(uint32_t i) const {
    std::vector<RepeatShape> around = section.repeats.around(i);
    return around.empty() || around.back().end > at;
  }

  absl::Status expectOneElsewhere(uint32_t needed) const {
    std::vector<InstructionAt> writers =
        writersOf(check.program, check.views,
                  section.list->Get(at)->op_as_Repeat()->count());
    if (writers.empty())
      return bad("nothing writes its count before, ", expected(needed));
    auto [list, i] = writers.back();
    const Section &last = check.sections[list];
    if (writers.front().list != list)
      return bad("its count is written in two other lists, by ",
                 check.sections[writers.front().list].where(
                     writers.front().instruction),
                 " and ", last.where(i), "; expected one list");
    return expectMaximum(last, i, needed,
                         isOfMicrobatch(last.kind) &&
                             last.repeats.around(i).empty());
  }

  /// `always`: whether the instruction runs whenever the repeat does.
  absl::Status expectMaximum(const Section &in, uint32_t i, uint32_t needed,
                             bool always) const {
    const Collective *op = in.list->Get(i)->op_as_Collective();
    bool isMaximum = op && op->kind() == CollectiveKind::all_reduce &&
                     op->reduction() == Reduction::max && !op->last_only() &&
                     always;
    uint32_t missing = isMaximum ? needed & ~axesOf(check.plan, *op) : needed;
    if (missing == 0)
      return absl::OkStatus();
    return bad("its count is last written by ", in.where(i),
               isMaximum ? absl::StrCat(", which leaves out ",
                                        axisText(check.plan, missing))
                         : std::string(),
               ", ", expected(needed));
  }

  const ProgramCheck &check;
  const Section &section;
  const uint32_t at;
  const ViewInfo &view;
};
} // namespace

absl::Status checkCounts(const ProgramCheck &check) {
  for (const Section &section : check.sections)
    for (uint32_t i = 0; i < section.list->size(); ++i) {
      const Repeat *repeat = section.list->Get(i)->op_as_Repeat();
      if (!repeat || !isCounted(*repeat))
        continue;
      absl::Status status = Count(check, section, i).run();
      if (!status.ok())
        return bad(section.where(i), ": ", status.message());
    }
  return absl::OkStatus();
}

} // namespace meshwork::plan
