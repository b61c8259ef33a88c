// Verifiers of attention and its gradient.
#include "dialects/schedule/Views.h"

using namespace mlir;

namespace meshwork::schedule {
namespace {

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
  if (op.getPositions() &&
      (!Strided(op.getPositions())
            .has(IntegerType::get(op.getContext(), 32), q.shape.slice(1, 1)) ||
       !Strided(op.getPositions()).isContiguous()))
    return op.emitOpError()
           << "(C7) has positions " << op.getPositions().getType()
           << ", expected i32 [" << q.shape[1] << "] without gaps";
  bool isOne = q.isWideFloat() && k.element() == q.element() &&
               v.element() == q.element() && out.element() == q.element();
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
    if (!Strided(gradient).has(of->element(), of->shape))
      return emitOpError() << "(C6) has a gradient " << gradient.getType()
                           << " of " << of->type
                           << ", expected one type and shape";
  return success();
}

} // namespace meshwork::schedule
