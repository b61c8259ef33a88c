// What a choice of a row's largest elements asks of its views.
#include "lib/Plan/CheckOperandsParts.h"

namespace meshwork::plan {
namespace {
using Shape = absl::Span<const int64_t>;

Shape rowsOf(const ViewInfo &view) {
  return view.shape.subspan(0, view.shape.size() - 1);
}

absl::Status checkTypes(const Operands &c, const ViewInfo &scores,
                        const ViewInfo &choices) {
  if (scores.dtype != DType::f32 || choices.dtype != DType::i32 ||
      scores.shape.empty() || choices.shape.size() != scores.shape.size() ||
      rowsOf(choices) != rowsOf(scores))
    return misfit("C1", "chooses ", describe(choices), " from ",
                  describe(scores),
                  ", expected i32[rows...,k] from f32[rows...,experts]");
  if (scores.buffer == choices.buffer)
    return misfit("C1", "scores and choices share buffer ",
                  c.nameOf(scores.buffer));
  return scores.shape.back() <= INT32_MAX
             ? absl::OkStatus()
             : misfit("C1", "has ", scores.shape.back(),
                      " experts, expected fewer than 2^31");
}

absl::Status checkGroups(const TopK &op, int64_t experts) {
  if (op.group_score() > GroupScore::MAX)
    return bad("unknown group score ", static_cast<int>(op.group_score()));
  if (op.groups() < 1 || experts % op.groups() != 0)
    return misfit("C2", "has ", op.groups(), " groups of ", experts,
                  " experts, expected a divisor of these");
  if (op.kept_groups() < 1 || op.kept_groups() > op.groups())
    return misfit("C2", "keeps ", op.kept_groups(), " groups, expected 1 to ",
                  op.groups());
  if (op.group_score() == GroupScore::two_best && experts / op.groups() < 2)
    return misfit("C2", "adds the two best of a group of one expert");
  return absl::OkStatus();
}

absl::Status checkValid(const ViewInfo &valid, Shape rows) {
  MESHWORK_RETURN_IF_ERROR(
      ruled("C4", expectView(valid, "valid", DType::f32, rows)));
  return valid.contiguous ? absl::OkStatus()
                          : misfit("C4", "valid is not contiguous");
}
} // namespace

absl::Status checkOp(const Operands &c, const TopK &op) {
  const ViewInfo &scores = c.views[op.scores()],
                 &choices = c.views[op.choices()];
  MESHWORK_RETURN_IF_ERROR(checkTypes(c, scores, choices));
  int64_t experts = scores.shape.back(), k = choices.shape.back();
  MESHWORK_RETURN_IF_ERROR(checkGroups(op, experts));
  int64_t most = experts / op.groups() * op.kept_groups();
  if (k > most)
    return misfit("C3", "makes ", k, " choices, expected 1 to ", most);
  return op.valid() == noView ? absl::OkStatus()
                              : checkValid(c.views[op.valid()], rowsOf(scores));
}

} // namespace meshwork::plan
