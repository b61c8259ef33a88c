#include "absl/strings/cord.h"
#include "lib/Plan/CheckOperandsParts.h"
#include "lib/Plan/Operation.h"
#include <cmath>

namespace meshwork::plan {
namespace {
constexpr char ruleUrl[] = "meshwork/rule";

absl::Status checkAccumulate(Accumulate mode) {
  if (mode > Accumulate::MAX)
    return bad("unknown accumulate mode ", static_cast<int>(mode));
  return absl::OkStatus();
}

/// `rows` must be ids' shape followed by the table's without its first dim.
absl::Status checkRows(const Operands &c, const ViewInfo &table,
                       const ViewInfo &ids, const ViewInfo &rows,
                       const char *role, uint32_t firstRow) {
  if (ids.dtype != DType::i32)
    return misfit("C1", "ids are ", describe(ids), ", expected i32");
  if (!isFloat(table) || table.shape.size() < 2 || !isFloat(rows))
    return misfit("C2", "the table is ", describe(table), " and ", role, " ",
                  describe(rows),
                  ", expected floats and a table of 2 dims or more");
  std::vector<int64_t> shape(ids.shape.begin(), ids.shape.end());
  shape.insert(shape.end(), table.shape.begin() + 1, table.shape.end());
  MESHWORK_RETURN_IF_ERROR(
      ruled("C2", expectView(rows, role, rows.dtype, shape)));
  return checkIndex(c, "C3", firstRow, "first_row");
}

absl::Status checkAngles(const RotaryTable &op) {
  bool finite = std::isfinite(op.scale());
  for (float frequency : orEmpty(op.inverse_frequencies()))
    finite &= std::isfinite(frequency);
  return finite ? absl::OkStatus()
                : misfit("C2", "a frequency or the scale is not finite");
}
} // namespace

absl::Status checkOp(const Operands &c, const Embedding &op) {
  return checkRows(c, c.views[op.table()], c.views[op.ids()], c.views[op.out()],
                   "out", op.first_row());
}

absl::Status checkOp(const Operands &c, const EmbeddingGrad &op) {
  MESHWORK_RETURN_IF_ERROR(checkAccumulate(op.accumulate()));
  return checkRows(c, c.views[op.dtable()], c.views[op.ids()],
                   c.views[op.dout()], "dout", op.first_row());
}

absl::Status checkOp(const Operands &c, const RotaryTable &op) {
  const ViewInfo &cos = c.views[op.cos()], &sin = c.views[op.sin()];
  uint32_t count = orEmpty(op.inverse_frequencies()).size();
  if (cos.dtype != DType::f32 || cos.shape.size() != 2 ||
      cos.shape[1] != 2 * int64_t{count} || !cos.contiguous || !sin.contiguous)
    return misfit("C1", "cos is ", describe(cos), " for ", count,
                  " frequencies, expected a contiguous f32[sequence,",
                  2 * uint64_t{count}, "]");
  MESHWORK_RETURN_IF_ERROR(
      ruled("C1", expectView(sin, "sin", DType::f32, cos.shape)));
  MESHWORK_RETURN_IF_ERROR(checkAngles(op));
  if (op.positions() == noView)
    return absl::OkStatus();
  const ViewInfo &positions = c.views[op.positions()];
  MESHWORK_RETURN_IF_ERROR(
      ruled("C3", expectView(positions, "positions", DType::i32,
                             cos.shape.subspan(0, 1))));
  return positions.contiguous ? absl::OkStatus()
                              : misfit("C3", "positions are not contiguous");
}

absl::Status checkOp(const Operands &c, const CopyBlock &op) {
  const ViewInfo &src = c.views[op.src()], &dst = c.views[op.dst()];
  std::vector<int64_t> shape(src.shape.begin(), src.shape.end());
  if (op.dim() < 0 || static_cast<size_t>(op.dim()) >= shape.size() ||
      dst.shape.size() != shape.size())
    return misfit("C1", "copies ", describe(src), " to ", describe(dst),
                  " along dim ", op.dim(), ", expected a dim of both");
  auto dim = static_cast<size_t>(op.dim());
  shape[dim] = dst.shape[dim];
  MESHWORK_RETURN_IF_ERROR(
      ruled("C1", expectView(dst, "dst", src.dtype, shape)));
  if (src.buffer == dst.buffer)
    return misfit("C2", "src and dst share buffer ", c.nameOf(src.buffer));
  return checkIndex(c, "C3", op.first(), "first");
}

absl::Status checkOp(const Operands &c, const Fill &op) {
  const ViewInfo &dst = c.views[op.dst()];
  float value = op.value();
  if (!isFloat(dst) && !(value >= -2147483648.0f && value < 2147483648.0f &&
                         value == std::trunc(value)))
    return misfit("C1", "fills ", describe(dst), " with ", value,
                  ", expected a whole number of 32 bits");
  bool areRows = dst.shape.size() == 2
                     ? dst.shape[1] == 1 || dst.strides[1] == 1
                     : dst.contiguous;
  return areRows ? absl::OkStatus()
                 : misfit("C2", "fills ", describe(dst),
                          " with gaps, expected elements side by side, or rows "
                          "of such");
}

absl::Status checkOp(const Operands &, const Launch &op) {
  uint32_t args = orEmpty(op.args()).size();
  if (op.num_outputs() == 0 || op.num_outputs() > args)
    return misfit("C1", "num_outputs is ", op.num_outputs(), " of ", args,
                  " args");
  return op.items() > 0 && op.items() <= static_cast<uint64_t>(INT64_MAX)
             ? absl::OkStatus()
             : misfit("C1", "it has ", op.items(),
                      " work items, expected 1 to 2^63 - 1");
}

/// What it holds is looked at with its list (Repeats::problem), and whether
/// ranks count alike (PlanCheckCounts.cpp).
absl::Status checkOp(const Operands &c, const Repeat &op) {
  return isCounted(op) ? ruled("C4", expectNumber(c.views[op.count()], "count",
                                                  DType::i32))
                       : absl::OkStatus();
}

absl::Status ruled(const char *rule, absl::Status status) {
  if (!status.ok())
    status.SetPayload(ruleUrl, absl::Cord(rule));
  return status;
}

std::string ruleOf(const absl::Status &status) {
  auto rule = status.GetPayload(ruleUrl);
  return rule ? std::string(*rule) : "";
}

absl::Status expectView(const ViewInfo &found, const char *role, DType dtype,
                        absl::Span<const int64_t> shape) {
  if (found.dtype == dtype && found.shape == shape)
    return absl::OkStatus();
  ViewInfo expected{};
  expected.dtype = dtype;
  expected.shape = shape;
  return bad(role, " is ", describe(found), ", expected ", describe(expected));
}

absl::Status expectShape(const ViewInfo &found, const char *role,
                         absl::Span<const int64_t> shape) {
  return expectView(found, role, found.dtype, shape);
}

absl::Status expectDims(const ViewInfo &found, const char *role, size_t dims) {
  return found.shape.size() == dims
             ? absl::OkStatus()
             : bad(role, " is ", describe(found), ", expected ", dims, " dims");
}

absl::Status expectNumber(const ViewInfo &found, const char *role,
                          DType dtype) {
  return found.dtype == dtype && found.elements == 1
             ? absl::OkStatus()
             : bad(role, " is ", describe(found), ", expected one ",
                   EnumNameDType(dtype));
}

absl::Status checkIndex(const Operands &c, const char *rule, uint32_t view,
                        const char *role) {
  return view == noView
             ? absl::OkStatus()
             : ruled(rule, expectNumber(c.views[view], role, DType::i32));
}

absl::Status checkOperands(const Instruction &instruction,
                           const Operands &operands) {
  MESHWORK_RETURN_IF_ERROR(checkChannel(instruction));
  return visitOperation<absl::Status>(
      instruction, [&](const auto &op) { return checkOp(operands, op); });
}

} // namespace meshwork::plan
