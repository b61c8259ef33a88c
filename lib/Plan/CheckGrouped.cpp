// What products of experts' rows ask of their views.
#include "lib/Plan/CheckOperandsParts.h"

namespace meshwork::plan {
namespace {

/// `lhs` and `rhs` are read, `dst` is written.
absl::Status checkTypes(const ViewInfo &lhs, const ViewInfo &rhs,
                        const ViewInfo &dst, const char *dstRole) {
  if (!isFloat(lhs) || rhs.dtype != lhs.dtype)
    return misfit("C2", "lhs is ", describe(lhs), " and rhs ", describe(rhs),
                  ", expected both f32 or both bf16");
  if (dst.dtype != DType::f32 && dst.dtype != lhs.dtype)
    return misfit("C2", dstRole, " is ", describe(dst),
                  ", expected f32, or bf16 beside operands of bf16");
  return absl::OkStatus();
}

/// [R, columns] in dense rows.
absl::Status checkRows(const ViewInfo &view, const char *role) {
  MESHWORK_RETURN_IF_ERROR(ruled("C1", expectDims(view, role, 2)));
  if (view.shape[0] > INT32_MAX)
    return misfit("C1", role, " has ", view.shape[0],
                  " rows, expected fewer than 2^31");
  return ruled("C3", expectRows(view, role, 1));
}

/// [E, K, N], with one of K and N dense, and the begins of as many experts.
absl::Status checkExperts(const ViewInfo &view, const char *role,
                          const ViewInfo &begins) {
  MESHWORK_RETURN_IF_ERROR(ruled(
      "C1", expectView(begins, "begins", DType::i32, {view.shape[0] + 1})));
  if (!begins.contiguous)
    return misfit("C1", "begins is ", describe(begins),
                  " with gaps, expected none");
  if (view.strides[1] == 1 || view.strides[2] == 1)
    return absl::OkStatus();
  return misfit("C3", role, " is ", describe(view), " with inner strides ",
                view.strides[1], " and ", view.strides[2],
                ", expected one of them to be 1");
}
} // namespace

absl::Status checkOp(const Operands &c, const GroupedProduct &op) {
  const ViewInfo &lhs = c.views[op.lhs()], &rhs = c.views[op.rhs()],
                 &out = c.views[op.out()];
  MESHWORK_RETURN_IF_ERROR(ruled("C1", expectDims(rhs, "rhs", 3)));
  MESHWORK_RETURN_IF_ERROR(checkRows(lhs, "lhs"));
  MESHWORK_RETURN_IF_ERROR(checkRows(out, "out"));
  MESHWORK_RETURN_IF_ERROR(
      ruled("C1", expectShape(rhs, "rhs",
                              {rhs.shape[0], lhs.shape[1], out.shape[1]})));
  MESHWORK_RETURN_IF_ERROR(
      ruled("C1", expectShape(out, "out", {lhs.shape[0], rhs.shape[2]})));
  MESHWORK_RETURN_IF_ERROR(checkTypes(lhs, rhs, out, "out"));
  MESHWORK_RETURN_IF_ERROR(checkExperts(rhs, "rhs", c.views[op.begins()]));
  return checkApart(
      c, "C4", {{"lhs", op.lhs()}, {"rhs", op.rhs()}, {"begins", op.begins()}},
      {{"out", op.out()}});
}

absl::Status checkOp(const Operands &c, const GroupedGradient &op) {
  if (op.accumulate() > Accumulate::MAX)
    return bad("unknown accumulate mode ", static_cast<int>(op.accumulate()));
  const ViewInfo &lhs = c.views[op.lhs()], &rhs = c.views[op.rhs()],
                 &dst = c.views[op.dst()];
  MESHWORK_RETURN_IF_ERROR(ruled("C1", expectDims(dst, "dst", 3)));
  MESHWORK_RETURN_IF_ERROR(checkRows(lhs, "lhs"));
  MESHWORK_RETURN_IF_ERROR(checkRows(rhs, "rhs"));
  MESHWORK_RETURN_IF_ERROR(
      ruled("C1", expectShape(rhs, "rhs", {lhs.shape[0], rhs.shape[1]})));
  MESHWORK_RETURN_IF_ERROR(
      ruled("C1", expectShape(dst, "dst",
                              {dst.shape[0], lhs.shape[1], rhs.shape[1]})));
  MESHWORK_RETURN_IF_ERROR(checkTypes(lhs, rhs, dst, "dst"));
  MESHWORK_RETURN_IF_ERROR(checkExperts(dst, "dst", c.views[op.begins()]));
  return checkApart(
      c, "C4", {{"lhs", op.lhs()}, {"rhs", op.rhs()}, {"begins", op.begins()}},
      {{"dst", op.dst()}});
}

} // namespace meshwork::plan
