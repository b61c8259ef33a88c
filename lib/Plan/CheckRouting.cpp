// What the instructions around experts ask of their views: choices, and rows in
// the order of the experts.
#include "lib/Plan/CheckOperandsParts.h"

namespace meshwork::plan {
namespace {
using Shape = absl::Span<const int64_t>;

Shape withoutLast(const ViewInfo &view) {
  return view.shape.subspan(0, view.shape.size() - 1);
}

/// What Pick and its gradient say alike: `picked` is of `choices`, [rows...,
/// k], and `scores` [rows..., experts].
absl::Status checkPick(const ViewInfo &scores, const char *scoresRole,
                       const ViewInfo &choices, const ViewInfo &picked,
                       const char *pickedRole) {
  if (choices.dtype != DType::i32 || choices.shape.empty())
    return misfit("C1", "choices are ", describe(choices),
                  ", expected i32[rows...,k]");
  MESHWORK_RETURN_IF_ERROR(
      ruled("C1", expectView(picked, pickedRole, DType::f32, choices.shape)));
  if (scores.dtype != DType::f32 || scores.shape.empty() ||
      withoutLast(scores) != withoutLast(choices))
    return misfit("C1", scoresRole, " is ", describe(scores),
                  ", expected f32[rows...,experts] with the rows of choices ",
                  describe(choices));
  if (scores.shape.back() > INT32_MAX)
    return misfit("C1", "has ", scores.shape.back(),
                  " experts, expected fewer than 2^31");
  size_t rows = choices.shape.size() - 1;
  MESHWORK_RETURN_IF_ERROR(ruled("C2", expectRows(scores, scoresRole, rows)));
  MESHWORK_RETURN_IF_ERROR(ruled("C2", expectRows(choices, "choices", rows)));
  return ruled("C2", expectRows(picked, pickedRole, rows));
}

/// i32, without gaps, one dim.
absl::Status expectList(const ViewInfo &found, const char *role) {
  MESHWORK_RETURN_IF_ERROR(expectNumbers(found, role));
  MESHWORK_RETURN_IF_ERROR(expectDims(found, role, 1));
  return found.elements <= INT32_MAX
             ? absl::OkStatus()
             : bad(role, " has ", found.elements,
                   " elements, expected fewer than 2^31");
}

/// Whether there is a row for each choice when those of a token differ, or for
/// `most`, unless it is 0.
absl::Status checkRowCount(const ViewInfo &choices, int64_t experts,
                           int64_t most, int64_t rows) {
  int64_t k = choices.shape.back(), tokens = choices.elements / k;
  int64_t all = std::min(k, experts) * tokens,
          least = most == 0 ? all : std::min(all, most);
  if (most < 0)
    return misfit("C3", "has rows for at most ", most,
                  " choices, expected 0, for all, or more");
  return rows >= least ? absl::OkStatus()
                       : misfit("C3", "has ", rows, " rows for ", tokens,
                                " tokens of ", k, " choices and ", experts,
                                " experts, expected at least ", least);
}

/// `many` has the shape of `numbers`, less `dropped` dims at its end, then that
/// of `table` without its first dim.
absl::Status checkRowsOf(const ViewInfo &table, const char *tableRole,
                         const ViewInfo &numbers, size_t dropped,
                         const ViewInfo &many, bool mayBeNumbers) {
  bool areFloats = isFloat(table) && isFloat(many),
       areNumbers = mayBeNumbers && table.dtype == DType::i32 &&
                    many.dtype == DType::i32;
  if (table.shape.empty() || !(areFloats || areNumbers))
    return misfit("C2", tableRole, " is ", describe(table), " and out ",
                  describe(many), ", expected f32 or bf16",
                  mayBeNumbers ? " or both i32" : "", ", and rows");
  size_t outer = numbers.shape.size() - dropped;
  std::vector<int64_t> shape(numbers.shape.begin(),
                             numbers.shape.begin() + outer);
  shape.insert(shape.end(), table.shape.begin() + 1, table.shape.end());
  MESHWORK_RETURN_IF_ERROR(ruled("C2", expectShape(many, "out", shape)));
  MESHWORK_RETURN_IF_ERROR(ruled("C3", expectRows(table, tableRole, 1)));
  return ruled("C3", expectRows(many, "out", outer));
}
} // namespace

absl::Status checkOp(const Operands &c, const Pick &op) {
  MESHWORK_RETURN_IF_ERROR(checkPick(c.views[op.scores()], "scores",
                                     c.views[op.choices()], c.views[op.out()],
                                     "out"));
  return checkApart(c, "C3",
                    {{"scores", op.scores()}, {"choices", op.choices()}},
                    {{"out", op.out()}});
}

absl::Status checkOp(const Operands &c, const PickGrad &op) {
  MESHWORK_RETURN_IF_ERROR(checkPick(c.views[op.dscores()], "dscores",
                                     c.views[op.choices()], c.views[op.dout()],
                                     "dout"));
  return checkApart(c, "C3", {{"choices", op.choices()}, {"dout", op.dout()}},
                    {{"dscores", op.dscores()}});
}

absl::Status checkOp(const Operands &c, const LimitChoices &op) {
  const ViewInfo &choices = c.views[op.choices()];
  MESHWORK_RETURN_IF_ERROR(
      ruled("C1", expectChoices(choices, c.views[op.kept()], "kept")));
  int64_t tokens = choices.elements / choices.shape.back();
  if (op.experts() < 1 || op.experts() > INT32_MAX || op.most() < 1)
    return misfit("C2", "leaves ", op.most(), " choices of each of ",
                  op.experts(),
                  " experts, expected 1 or more of both, and "
                  "fewer than 2^31 experts");
  if (op.group() < 1 || tokens % op.group() != 0)
    return misfit("C2", "has groups of ", op.group(), " of ", tokens,
                  " tokens, expected a divisor of these");
  return checkApart(c, "C3", {{"choices", op.choices()}},
                    {{"kept", op.kept()}});
}

absl::Status checkOp(const Operands &c, const SortRows &op) {
  const ViewInfo &choices = c.views[op.choices()], &order = c.views[op.order()],
                 &begins = c.views[op.begins()];
  MESHWORK_RETURN_IF_ERROR(
      ruled("C1", expectChoices(choices, c.views[op.places()])));
  MESHWORK_RETURN_IF_ERROR(ruled("C2", expectList(order, "order")));
  MESHWORK_RETURN_IF_ERROR(
      ruled("C2", expectList(c.views[op.tokens()], "tokens")));
  MESHWORK_RETURN_IF_ERROR(
      ruled("C2", expectShape(c.views[op.tokens()], "tokens", order.shape)));
  MESHWORK_RETURN_IF_ERROR(ruled("C2", expectList(begins, "begins")));
  if (begins.elements < 2)
    return misfit("C2", "begins is ", describe(begins),
                  ", expected one more than experts, of which there is one");
  MESHWORK_RETURN_IF_ERROR(checkRowCount(choices, begins.elements - 1,
                                         op.most_choices(), order.elements));
  MESHWORK_RETURN_IF_ERROR(
      checkIndex(c, "C4", op.first_expert(), "first_expert"));
  return checkApart(
      c, "C5", {{"choices", op.choices()}, {"first_expert", op.first_expert()}},
      {{"order", op.order()},
       {"tokens", op.tokens()},
       {"places", op.places()},
       {"begins", op.begins()}});
}

absl::Status checkOp(const Operands &c, const TakeRows &op) {
  const ViewInfo &rows = c.views[op.rows()];
  MESHWORK_RETURN_IF_ERROR(ruled("C1", expectNumbers(rows, "rows")));
  MESHWORK_RETURN_IF_ERROR(checkRowsOf(c.views[op.table()], "table", rows, 0,
                                       c.views[op.out()],
                                       /*mayBeNumbers=*/true));
  return checkApart(c, "C4", {{"table", op.table()}, {"rows", op.rows()}},
                    {{"out", op.out()}});
}

absl::Status checkOp(const Operands &c, const CombineRows &op) {
  const ViewInfo &choices = c.views[op.choices()];
  MESHWORK_RETURN_IF_ERROR(
      ruled("C1", expectChoices(choices, c.views[op.places()])));
  MESHWORK_RETURN_IF_ERROR(checkRowsOf(c.views[op.src()], "src", choices, 1,
                                       c.views[op.out()],
                                       /*mayBeNumbers=*/false));
  return checkApart(
      c, "C4",
      {{"src", op.src()}, {"places", op.places()}, {"choices", op.choices()}},
      {{"out", op.out()}});
}

} // namespace meshwork::plan
