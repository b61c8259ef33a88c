// Verifiers of attention and its gradient.
#include "dialects/schedule/Views.h"

using namespace mlir;

namespace meshwork::schedule {
namespace {

/// Which rows of the sequence `of` has.
template <typename Op>
LogicalResult verifyRows(Op op, StringRef name, Value rows, const Strided &of) {
  if (!rows || (Strided(rows).has(IntegerType::get(op.getContext(), 32),
                                  of.shape.slice(1, 1)) &&
                Strided(rows).isContiguous()))
    return success();
  return op.emitOpError() << "(C7) has " << name << " " << rows.getType()
                          << ", expected i32 [" << of.shape[1]
                          << "] without gaps";
}

template <typename Op> LogicalResult verifyPositions(Op op) {
  if (failed(
          verifyRows(op, "positions", op.getPositions(), Strided(op.getQ()))) ||
      failed(verifyRows(op, "keys", op.getKeyPositions(), Strided(op.getK()))))
    return failure();
  int64_t total = op.getTotalKeys();
  if (op.getKeyPositions() ? total > 0 && op.getPositions() : total == 0)
    return success();
  return op.emitOpError() << "(C7) has " << (op.getKeyPositions() ? "" : "no ")
                          << "keys of " << total
                          << (op.getPositions() ? "" : " and no positions")
                          << ", expected keys beside positions, of one or more";
}

/// What attention to some of the keys writes is a part of a sum.
template <typename Op> bool mayBe(Op op, Type written, const Strided &of) {
  return written == of.element() || (op.getKeyPositions() && written.isF32());
}

template <typename Op> LogicalResult verifyShapes(Op op) {
  Strided q(op.getQ()), k(op.getK()), v(op.getV()), out(op.getOut()),
      lse(op.getLse());
  bool fit = q.rank() == 4 && k.rank() == 4;
  if (fit) {
    int64_t b = q.shape[0], s = q.shape[1], heads = q.shape[2], d = q.shape[3],
            kvHeads = k.shape[2], keys = op.getPositions() ? k.shape[1] : s;
    fit = k.shape == ArrayRef{b, keys, kvHeads, d} && v.shape == k.shape &&
          out.shape == q.shape && lse.shape == ArrayRef{b, heads, s} &&
          heads % kvHeads == 0;
  }
  if (!fit)
    return op.emitOpError()
           << "(C1) has q " << q.type << ", k " << k.type << ", v " << v.type
           << ", out " << out.type << " and lse " << lse.type
           << ", expected [b,s,heads,d], twice [b,s,kv_heads,d], "
              "[b,s,heads,d] and [b,heads,s], heads a multiple of kv_heads";
  if (failed(verifyPositions(op)))
    return failure();
  bool isOne = q.isWideFloat() && k.element() == q.element() &&
               v.element() == q.element() &&
               (isa<AttentionOp>(op) ? mayBe(op, out.element(), q)
                                     : out.element() == q.element());
  if (!isOne || !lse.element().isF32())
    return op.emitOpError()
           << "(C2) has q " << q.type << ", k " << k.type << ", v " << v.type
           << ", out " << out.type << " and lse " << lse.type
           << ", expected one type, f32 or bf16, and lse of f32";
  return success();
}

template <typename Op> LogicalResult verifyMask(Op op) {
  if (!op.getScale().isFinite() || static_cast<int64_t>(op.getWindow()) < 0)
    return op.emitOpError()
           << "(C3) has scale " << op.getScale().convertToDouble()
           << " and window " << static_cast<int64_t>(op.getWindow())
           << ", expected a finite scale and a window of 0 or more";
  if (!op.getDocuments())
    return success();
  Strided q(op.getQ()), documents(op.getDocuments());
  if (!documents.has(IntegerType::get(op.getContext(), 32),
                     q.shape.take_front(2)) ||
      !documents.isContiguous())
    return op.emitOpError()
           << "(C4) has documents " << documents.type << ", expected i32 ["
           << q.shape[0] << ", " << q.shape[1] << "] without gaps";
  if (!op.getCausal())
    return op.emitOpError() << "(C4) has documents but is not causal";
  return success();
}

template <typename Op> LogicalResult verifyDropout(Op op) {
  Type i32 = IntegerType::get(op.getContext(), 32);
  double rate = op.getRate().convertToDouble();
  OperandRange random = op.getRandom();
  bool isNone = rate == 0 && random.empty();
  if (!isNone &&
      !(rate > 0 && rate < 1 && (random.size() == 1 || random.size() == 2)))
    return op.emitOpError()
           << "(C5) has rate " << rate << " and " << random.size()
           << " random views, expected 0 and none, or less than 1 and one or "
              "two";
  if (!isNone && !Strided(random[0]).has(i32, {3}))
    return op.emitOpError()
           << "(C5) has random " << random[0].getType() << ", expected i32 [3]";
  if (random.size() > 1 && !Strided(random[1]).isNumber(i32))
    return op.emitOpError() << "(C5) has the first head " << random[1].getType()
                            << ", expected one i32";
  int64_t heads = op.getHeads(), own = Strided(op.getQ()).shape[2];
  if (!isNone && heads != 0 && heads < own)
    return op.emitOpError()
           << "(C5) is of " << heads << " heads, expected at least q's " << own;
  return success();
}
} // namespace

LogicalResult AttentionOp::verify() {
  return success(succeeded(verifyShapes(*this)) &&
                 succeeded(verifyMask(*this)) &&
                 succeeded(verifyDropout(*this)));
}

LogicalResult AttentionGradOp::verify() {
  if (failed(verifyShapes(*this)) || failed(verifyMask(*this)) ||
      failed(verifyDropout(*this)))
    return failure();
  Strided q(getQ()), k(getK());
  for (auto [gradient, of] : {std::pair(getDout(), &q), std::pair(getDq(), &q),
                              std::pair(getDk(), &k), std::pair(getDv(), &k)})
    if (Strided found(gradient);
        found.shape != of->shape ||
        (gradient == getDout() ? found.element() != of->element()
                               : !mayBe(*this, found.element(), *of)))
      return emitOpError() << "(C6) has a gradient " << gradient.getType()
                           << " of " << of->type
                           << ", expected one type and shape";
  return success();
}

} // namespace meshwork::schedule
