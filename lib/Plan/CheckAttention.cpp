// The operands of attention and its gradient.
#include "lib/Plan/CheckOperandsParts.h"
#include <cmath>

namespace meshwork::plan {
namespace {
/// One attention, or gradient, while it is looked at.
template <typename Op> struct Attended {
  const Operands &c;
  const Op &op;
  const AttentionPart &part = *op.part();
  const ViewInfo &q = c.views[op.q()], &k = c.views[op.k()],
                 &v = c.views[op.v()], &lse = c.views[op.lse()],
                 &out = c.views[op.out()];

  absl::Status checkShapes() const {
    MESHWORK_RETURN_IF_ERROR(expectDims(q, "q", 4));
    MESHWORK_RETURN_IF_ERROR(expectDims(k, "k", 4));
    int64_t b = q.shape[0], s = q.shape[1], heads = q.shape[2], d = q.shape[3],
            kvHeads = k.shape[2],
            keys = part.positions() == noView ? s : k.shape[1];
    MESHWORK_RETURN_IF_ERROR(expectShape(k, "k", {b, keys, kvHeads, d}));
    MESHWORK_RETURN_IF_ERROR(expectShape(v, "v", k.shape));
    MESHWORK_RETURN_IF_ERROR(expectShape(out, "out", q.shape));
    MESHWORK_RETURN_IF_ERROR(expectShape(lse, "lse", {b, heads, s}));
    return heads % kvHeads == 0
               ? absl::OkStatus()
               : bad(heads, " query heads are not a multiple of ", kvHeads,
                     " key heads");
  }

  absl::Status checkRowNumbers(uint32_t view, const char *role,
                               int64_t rows) const {
    if (view == noView)
      return absl::OkStatus();
    const ViewInfo &numbers = c.views[view];
    MESHWORK_RETURN_IF_ERROR(
        ruled("C7", expectView(numbers, role, DType::i32, {rows})));
    return numbers.contiguous ? absl::OkStatus()
                              : misfit("C7", role, " are ", describe(numbers),
                                       ", expected no gaps");
  }

  absl::Status checkPositions() const {
    MESHWORK_RETURN_IF_ERROR(
        checkRowNumbers(part.positions(), "positions", q.shape[1]));
    MESHWORK_RETURN_IF_ERROR(
        checkRowNumbers(part.key_positions(), "key positions", k.shape[1]));
    if (part.key_positions() == noView)
      return part.total_keys() == 0
                 ? absl::OkStatus()
                 : misfit("C7", "has ", part.total_keys(),
                          " keys in all but no key positions");
    if (part.positions() == noView)
      return misfit("C7", "has key positions but none of its queries");
    constexpr int64_t most = int64_t{1} << 31;
    return part.total_keys() > 0 && part.total_keys() <= most
               ? absl::OkStatus()
               : misfit("C7", "has ", part.total_keys(),
                        " keys in all, expected 1 to ", most);
  }

  /// Parts of sums over keys may be f32.
  absl::Status checkPart(const char *rule, uint32_t view, const char *role,
                         const ViewInfo &like) const {
    const ViewInfo &found = c.views[view];
    bool isPart = part.key_positions() != noView && found.dtype == DType::f32;
    return ruled(
        rule,
        expectView(found, role, isPart ? found.dtype : like.dtype, like.shape));
  }

  absl::Status checkTypes() const {
    if (isFloat(q) && k.dtype == q.dtype && v.dtype == q.dtype &&
        lse.dtype == DType::f32)
      return absl::OkStatus();
    return misfit("C2", "q is ", describe(q), ", k ", describe(k), ", v ",
                  describe(v), " and lse ", describe(lse),
                  ", expected one type, f32 or bf16, and lse of f32");
  }

  absl::Status checkMask() const {
    if (!std::isfinite(part.scale()))
      return misfit("C3", "scale is ", part.scale(), ", expected a finite one");
    if (!std::isfinite(part.cap()) || part.cap() < 0)
      return misfit("C3", "cap is ", part.cap(),
                    ", expected a finite one from 0");
    if (part.window() < 0)
      return misfit("C3", "window is ", part.window(), ", expected 0 or more");
    if (part.documents() == noView)
      return absl::OkStatus();
    const ViewInfo &documents = c.views[part.documents()];
    MESHWORK_RETURN_IF_ERROR(
        ruled("C4", expectView(documents, "documents", DType::i32,
                               q.shape.subspan(0, 2))));
    if (!documents.contiguous)
      return misfit("C4", "documents are ", describe(documents),
                    ", expected no gaps");
    if (!part.causal())
      return misfit("C4", "has documents but is not causal");
    return absl::OkStatus();
  }

  absl::Status checkDropout() const {
    const Dropout *dropout = part.dropout();
    if (!dropout)
      return absl::OkStatus();
    if (!(dropout->keep_scale() >= 1) || !std::isfinite(dropout->keep_scale()))
      return misfit("C5", "dropout has keep_scale ", dropout->keep_scale(),
                    ", expected at least 1");
    MESHWORK_RETURN_IF_ERROR(
        ruled("C5", expectView(c.views[dropout->random()], "dropout.random",
                               DType::i32, {3})));
    if (dropout->heads() != 0 && dropout->heads() < q.shape[2])
      return misfit("C5", "dropout is over ", dropout->heads(),
                    " heads, q alone has ", q.shape[2]);
    return checkIndex(c, "C5", dropout->first_head(), "dropout.first_head");
  }

  absl::Status checkAll() const {
    MESHWORK_RETURN_IF_ERROR(ruled("C1", checkShapes()));
    MESHWORK_RETURN_IF_ERROR(checkPositions());
    MESHWORK_RETURN_IF_ERROR(checkTypes());
    MESHWORK_RETURN_IF_ERROR(checkMask());
    return checkDropout();
  }
};
} // namespace

absl::Status checkOp(const Operands &c, const Attention &op) {
  Attended<Attention> attended{c, op};
  MESHWORK_RETURN_IF_ERROR(attended.checkAll());
  return attended.checkPart("C2", op.out(), "out", attended.q);
}

absl::Status checkOp(const Operands &c, const AttentionGrad &op) {
  Attended<AttentionGrad> attended{c, op};
  MESHWORK_RETURN_IF_ERROR(attended.checkAll());
  const ViewInfo &q = attended.q, &k = attended.k;
  MESHWORK_RETURN_IF_ERROR(
      ruled("C2", expectView(attended.out, "out", q.dtype, q.shape)));
  MESHWORK_RETURN_IF_ERROR(
      ruled("C6", expectView(c.views[op.dout()], "dout", q.dtype, q.shape)));
  MESHWORK_RETURN_IF_ERROR(attended.checkPart("C6", op.dq(), "dq", q));
  MESHWORK_RETURN_IF_ERROR(attended.checkPart("C6", op.dk(), "dk", k));
  return attended.checkPart("C6", op.dv(), "dv", k);
}

} // namespace meshwork::plan
