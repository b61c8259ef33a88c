// The operands of a matrix product.
#include "lib/Plan/CheckOperandsParts.h"

namespace meshwork::plan {
namespace {
using Shape = absl::Span<const int64_t>;

/// One product while it is looked at.
struct Product {
  const Operands &c;
  const Matmul &op;
  const ViewInfo &lhs = c.views[op.lhs()], &rhs = c.views[op.rhs()],
                 &dst = c.views[op.dst()];

  bool has(uint32_t view) const { return view != noView; }

  /// [b,m,k] and [b,k,n], or [1,k,n] for all b, to [b,m,n].
  absl::Status checkShapes() const {
    MESHWORK_RETURN_IF_ERROR(expectDims(lhs, "lhs", 3));
    MESHWORK_RETURN_IF_ERROR(expectDims(rhs, "rhs", 3));
    int64_t b = lhs.shape[0], m = lhs.shape[1], k = lhs.shape[2],
            n = rhs.shape[2];
    int64_t of = rhs.shape[0] == 1 ? 1 : b;
    MESHWORK_RETURN_IF_ERROR(expectShape(rhs, "rhs", {of, k, n}));
    MESHWORK_RETURN_IF_ERROR(expectShape(dst, "dst", {b, m, n}));
    return checkStrides();
  }

  absl::Status checkStrides() const {
    for (const ViewInfo *view : {&lhs, &rhs, &dst})
      if (view->strides[1] != 1 && view->strides[2] != 1)
        return bad(describe(*view), " has inner strides ", view->strides[1],
                   " and ", view->strides[2], ", expected one of them to be 1");
    return absl::OkStatus();
  }

  /// Of 8 bits both operands or none.
  absl::Status checkTypes() const {
    if (!isFloat(dst))
      return misfit("C2", "dst is ", describe(dst), ", expected f32 or bf16");
    if (isFloat(lhs) && lhs.dtype == rhs.dtype)
      return absl::OkStatus();
    if (!isFloat8(lhs.dtype) || !isFloat8(rhs.dtype) ||
        (lhs.dtype == DType::e5m2 && rhs.dtype == lhs.dtype))
      return misfit("C2", "lhs is ", describe(lhs), " and rhs ", describe(rhs),
                    ", expected both f32 or bf16, or both of 8 bits and not "
                    "both e5m2");
    if (lhs.strides[2] != 1 || rhs.strides[1] != 1)
      return misfit("C2", "lhs is ", describe(lhs), " and rhs ", describe(rhs),
                    ", expected both dense along the dim that is summed");
    return absl::OkStatus();
  }

  absl::Status checkScale(uint32_t view, const char *role) const {
    bool isNeeded = isFloat8(lhs.dtype);
    if (!has(view))
      return isNeeded ? misfit("C3", "there is no ", role,
                               ", expected one beside operands of 8 bits")
                      : absl::OkStatus();
    if (!isNeeded)
      return misfit("C3", "there is a ", role,
                    ", expected none without operands of 8 bits");
    return ruled("C3", expectNumber(c.views[view], role, DType::f32));
  }

  absl::Status checkBias() const {
    if (!has(op.bias()))
      return absl::OkStatus();
    if (op.epilogue() != Epilogue::none && op.epilogue() != Epilogue::gelu)
      return misfit("C4", "it has a bias and the epilogue ",
                    EnumNameEpilogue(op.epilogue()), ", expected one of them");
    const ViewInfo &bias = c.views[op.bias()];
    if (isFloat(bias) && bias.shape == Shape{rhs.shape[2]})
      return absl::OkStatus();
    return misfit("C4", "bias is ", describe(bias), ", expected ", rhs.shape[2],
                  " elements of f32 or bf16");
  }

  absl::Status checkAux() const {
    if (op.epilogue() == Epilogue::none)
      return has(op.aux()) ? misfit("C5", "there is an aux, expected none "
                                          "without an epilogue")
                           : absl::OkStatus();
    if (!isFloat(lhs) || lhs.shape[0] != 1)
      return misfit("C5", "lhs is ", describe(lhs),
                    ", expected one product of f32 or bf16 beside an epilogue");
    if (!has(op.aux()))
      return op.epilogue() == Epilogue::gelu
                 ? absl::OkStatus()
                 : misfit("C5", "there is no aux, expected one of ",
                          EnumNameEpilogue(op.epilogue()));
    for (uint32_t view : {op.lhs(), op.rhs(), op.dst()})
      if (op.epilogue() != Epilogue::gelu_grad &&
          c.views[view].buffer == c.views[op.aux()].buffer)
        return misfit("C5", "aux shares buffer ",
                      c.nameOf(c.views[view].buffer),
                      " with another operand, expected one of its own");
    return absl::OkStatus();
  }

  /// The input of a GELU, or the gradient's, beside `dst`.
  absl::Status checkGelu() const {
    constexpr int64_t unit = 8; // elements that cuBLASLt takes at a time
    if (op.accumulate() != Accumulate::no)
      return misfit("C6",
                    "it has a GELU and adds to dst, expected accumulate no");
    if (dst.strides[2] != 1)
      return misfit("C6", "dst is ", describe(dst), " with strides ",
                    dst.strides[1], ", ", dst.strides[2],
                    ", expected dense rows beside a GELU");
    if (!has(op.aux()))
      return absl::OkStatus();
    const ViewInfo &aux = c.views[op.aux()];
    MESHWORK_RETURN_IF_ERROR(
        ruled("C6", expectView(aux, "aux", dst.dtype, dst.shape)));
    if (aux.strides[2] == 1 && aux.strides[1] >= aux.shape[2] &&
        aux.strides[1] % unit == 0)
      return absl::OkStatus();
    return misfit("C6", "aux is ", describe(aux), " with strides ",
                  aux.strides[1], ", ", aux.strides[2],
                  ", expected dense rows a multiple of ", unit,
                  " elements apart");
  }

  absl::Status checkSums() const {
    const ViewInfo &aux = c.views[op.aux()];
    int64_t count = dst.shape[op.epilogue() == Epilogue::sum_lhs ? 1 : 2];
    MESHWORK_RETURN_IF_ERROR(
        ruled("C7", expectView(aux, "aux", dst.dtype, {count})));
    if (aux.contiguous)
      return absl::OkStatus();
    return misfit("C7", "aux has stride ", aux.strides[0],
                  ", expected dense sums");
  }

  absl::Status checkEpilogue() const {
    switch (op.epilogue()) {
    case Epilogue::none:
      return absl::OkStatus();
    case Epilogue::gelu:
    case Epilogue::gelu_grad:
      return checkGelu();
    default:
      return checkSums();
    }
  }
};
} // namespace

absl::Status checkOp(const Operands &c, const Matmul &op) {
  if (op.accumulate() > Accumulate::MAX)
    return bad("unknown accumulate mode ", static_cast<int>(op.accumulate()));
  if (op.epilogue() > Epilogue::MAX)
    return bad("unknown epilogue ", static_cast<int>(op.epilogue()));
  Product product{c, op};
  MESHWORK_RETURN_IF_ERROR(ruled("C1", product.checkShapes()));
  MESHWORK_RETURN_IF_ERROR(product.checkTypes());
  MESHWORK_RETURN_IF_ERROR(product.checkScale(op.lhs_scale(), "lhs_scale"));
  MESHWORK_RETURN_IF_ERROR(product.checkScale(op.rhs_scale(), "rhs_scale"));
  MESHWORK_RETURN_IF_ERROR(product.checkBias());
  MESHWORK_RETURN_IF_ERROR(product.checkAux());
  return product.checkEpilogue();
}

} // namespace meshwork::plan
