// Attention and its gradient: their attribute, their flops, and what types
// cannot say of them. The labels are those of the op's description.
#include "dialects/transformer/Dims.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace meshwork::transformer;

//===-- AttentionAttr -------------------------------------------------------//

/// What follows `keyword`; without that, `value` stays.
template <typename T>
static ParseResult parseIf(AsmParser &parser, StringRef keyword, T &value) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  FailureOr<T> found = FieldParser<T>::parse(parser);
  value = found.value_or(value);
  return success(succeeded(found));
}
static ParseResult parseNumber(AsmParser &parser, StringRef keyword,
                               APFloat &value) {
  return failure(parser.parseKeyword(keyword) ||
                 parser.parseFloat(APFloat::IEEEdouble(), value));
}
static ParseResult parseNumberIf(AsmParser &parser, StringRef keyword,
                                 APFloat &value) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  return parser.parseFloat(APFloat::IEEEdouble(), value);
}

Attribute AttentionAttr::parse(AsmParser &parser, Type) {
  APFloat scale(0.0), cap(0.0), rate(0.0);
  std::string dropout;
  int64_t window = 0, heads = 0, keys = 0;
  Sharing sharing = Sharing::none;
  bool causal = succeeded(parser.parseOptionalKeyword("causal"));
  if (parseNumber(parser, "scale", scale) ||
      parseNumberIf(parser, "cap", cap) || parseIf(parser, "window", window))
    return {};
  if (succeeded(parser.parseOptionalKeyword("dropout")) &&
      (parser.parseString(&dropout) || parseNumber(parser, "rate", rate)))
    return {};
  if (parseIf(parser, "heads", heads) || parseIf(parser, "keys", keys) ||
      parseIf(parser, "shared", sharing))
    return {};
  return get(parser.getContext(), causal, scale, cap, window, dropout, rate,
             heads, keys, sharing);
}

/// The text of models is compared with that of checkpoints: it stays as it is.
void AttentionAttr::print(AsmPrinter &printer) const {
  auto count = [&](StringRef keyword, int64_t value) {
    if (value != 0)
      printer << keyword << value;
  };
  printer << (getCausal() ? " causal scale " : " scale ") << getScale();
  if (!getCap().isZero())
    printer << " cap " << getCap();
  count(" window ", getWindow());
  if (!getDropoutName().empty() || !getRate().isZero()) {
    printer << " dropout ";
    printer.printString(getDropoutName());
    printer << " rate " << getRate();
  }
  count(" heads ", getTotalHeads());
  count(" keys ", getTotalKeys());
  if (getSharing() != Sharing::none)
    printer << " shared " << stringifySharing(getSharing());
}

AttentionAttr AttentionAttr::with(const Change &change) const {
  return get(getContext(), getCausal(), getScale(), getCap(),
             change.window.value_or(getWindow()), getDropoutName(), getRate(),
             change.totalHeads.value_or(getTotalHeads()),
             change.totalKeys.value_or(getTotalKeys()),
             change.sharing.value_or(getSharing()));
}

uint32_t AttentionAttr::getStream() const {
  return randomStream(getDropoutName());
}

//===-- Flops ---------------------------------------------------------------//

/// Pairs of query and key that the mask leaves in a sequence of `s` tokens.
static uint64_t pairsOf(AttentionAttr terms, uint64_t s) {
  uint64_t window = terms.getWindow();
  if (terms.getCausal() && window && window < s)
    return window * (window + 1) / 2 + (s - window) * window;
  return terms.getCausal() ? s * (s + 1) / 2 : s * s;
}

/// Pairs times 4 flops per element of head_dim (q k^T and p v). A rank with
/// some of the queries has a share of them: that of zigzag, and of blocks the
/// mean over ranks. So it has of the keys: the mean over ranks and hops.
static uint64_t attentionFlops(AttentionOpInterface op) {
  AttentionPart part = op.getPart();
  auto q = tensorType(op.getQ());
  auto given = static_cast<uint64_t>(tensorType(op.getK()).getDimSize(1)),
       own = static_cast<uint64_t>(q.getDimSize(1));
  uint64_t s = part.keys ? part.terms.getTotalKeys() : given;
  auto shareOf = [&](uint64_t all, uint64_t part) {
    return part == s
               ? all
               : static_cast<uint64_t>(static_cast<unsigned __int128>(all) *
                                       part / std::max<uint64_t>(s, 1));
  };
  uint64_t flops = shareOf(shareOf(pairsOf(part.terms, s), own), given);
  for (int64_t factor :
       {int64_t{4}, q.getDimSize(0), q.getDimSize(2), q.getDimSize(3)})
    flops = llvm::SaturatingMultiply<uint64_t>(flops, factor);
  return flops;
}
uint64_t AttentionOp::getFlops() { return attentionFlops(*this); }
/// dv, dp, dq and dk; that the scores are computed again is no model flop.
uint64_t AttentionGradOp::getFlops() {
  return llvm::SaturatingMultiply<uint64_t>(attentionFlops(*this), 2);
}

//===-- Verifiers -----------------------------------------------------------//

/// `type` is `of`; of attention to some of the keys it may be an f32 part of a
/// sum.
static bool fits(const AttentionPart &part, Type type, Value of) {
  auto f32 = Float32Type::get(type.getContext());
  return type == of.getType() ||
         (part.keys && type == withElement(of.getType(), f32));
}

/// The type of some dims of `of`, in that order.
static RankedTensorType typeOf(Value of, ArrayRef<unsigned> dims,
                               Type element) {
  auto type = tensorType(of);
  SmallVector<int64_t> shape;
  SmallVector<StringAttr> names;
  for (unsigned dim : dims) {
    shape.push_back(type.getDimSize(dim));
    names.push_back(dimsOf(type).getNames()[dim]);
  }
  return namedType(shape, DimsAttr::get(type.getContext(), names), element);
}

/// Queries, keys, values and what is made of them; label C1.
static LogicalResult verifyHeads(AttentionOpInterface op,
                                 const AttentionPart &part) {
  auto q = tensorType(op.getQ()), k = tensorType(op.getK()),
       v = tensorType(op.getV());
  Type out = op.getOut().getType();
  bool resultFits =
      isa<AttentionOp>(op) ? fits(part, out, op.getQ()) : out == q;
  if (q.getRank() != 4 || k != v || k.getRank() != 4 ||
      q.getDimSize(0) != k.getDimSize(0) ||
      (!part.positions && q.getDimSize(1) != k.getDimSize(1)) ||
      q.getDimSize(3) != k.getDimSize(3) || !resultFits)
    return op.emitOpError()
           << "(C1) expected q, result [batch, sequence, heads, head_dim] and "
              "k, v [batch, sequence, kv_heads, head_dim], found "
           << q << ", " << k << ", " << v << ", " << out;
  int64_t heads = q.getDimSize(2), kvHeads = k.getDimSize(2);
  if (kvHeads <= 0 || heads <= 0 || heads % kvHeads)
    return op.emitOpError()
           << "(C1) " << heads << " heads are not divisible by " << kvHeads
           << " kv_heads";
  return success();
}

/// What has a number for each row; labels C1 and C3.
static LogicalResult verifyRows(AttentionOpInterface op,
                                const AttentionPart &part) {
  Value q = op.getQ(), k = op.getK();
  Builder builder(op.getContext());
  Type i32 = builder.getI32Type(), f32 = builder.getF32Type();
  for (auto [what, rows, wanted] :
       {std::tuple("lse", op.getLse(), typeOf(q, {0, 2, 1}, f32)),
        {"documents", part.documents, typeOf(q, {0, 1}, i32)},
        {"positions", part.positions, typeOf(q, {1}, i32)},
        {"keys", part.keys, typeOf(k, {1}, i32)}})
    if (rows && rows.getType() != wanted)
      return op.emitOpError() << "(C1) " << what << " is " << rows.getType()
                              << ", expected " << wanted;
  if (part.documents && !part.terms.getCausal())
    return op.emitOpError()
           << "(C1) has documents but is not causal; where a document ends is "
              "not said, so a query would see those that follow";
  int64_t total = part.terms.getTotalKeys();
  if (part.keys ? total > 0 && part.positions : total == 0)
    return success();
  return op.emitOpError()
         << "(C3) has " << (part.keys ? "" : "no ") << "keys of " << total
         << (part.positions ? "" : " and no positions")
         << "; keys stand beside positions and are of one key or more";
}

static LogicalResult verifyDropout(AttentionOpInterface op,
                                   const AttentionPart &part) {
  double rate = part.terms.getRate().convertToDouble();
  if (!(rate >= 0 && rate < 1))
    return op.emitOpError() << "(C2) dropout rate is " << rate
                            << ", expected at least 0 and less than 1";
  size_t wanted = rate > 0 ? (part.terms.getTotalHeads() ? 4 : 3) : 0,
         given = part.random.size();
  bool mayLack = given == 0 && isa<AttentionOp>(op);
  if (given != wanted && !mayLack)
    return op.emitOpError()
           << "(C2) has " << given << " random operands at rate " << rate
           << ", expected " << wanted;
  for (Value random : part.random)
    if (tensorType(random).getRank() != 0)
      return op.emitOpError() << "(C2) random operand is " << random.getType()
                              << ", expected tensor<i32>";
  return success();
}

static LogicalResult verifyAttention(AttentionOpInterface op) {
  AttentionPart part = op.getPart();
  if (failed(verifyHeads(op, part)) || failed(verifyRows(op, part)) ||
      failed(verifyDropout(op, part)))
    return failure();
  if (part.terms.getWindow() < 0)
    return op.emitOpError() << "(C2) window is " << part.terms.getWindow()
                            << ", expected at least 0";
  if (!part.terms.getScale().isFinite())
    return op.emitOpError() << "(C2) scale is not finite";
  if (double cap = part.terms.getCap().convertToDouble();
      !(cap >= 0 && cap <= std::numeric_limits<float>::max()))
    return op.emitOpError()
           << "(C2) cap is " << cap << ", expected a finite number from 0";
  for (NamedAttribute given : op->getDiscardableAttrs())
    if (StringRef name = given.getName().strref(); !name.contains('.'))
      return op.emitOpError()
             << "(C4) has the attribute '" << name
             << "', which means nothing on it; expected window, dropout and "
                "the like before the types, as `scale` is";
  return success();
}
LogicalResult AttentionOp::verify() { return verifyAttention(*this); }

LogicalResult AttentionGradOp::verify() {
  if (failed(verifyAttention(*this)))
    return failure();
  for (auto [gradient, of] : {std::pair<Value, Value>(getGradient(), getQ()),
                              {getDq(), getQ()},
                              {getDk(), getK()},
                              {getDv(), getV()}})
    if (gradient == getGradient() ? gradient.getType() != of.getType()
                                  : !fits(getPart(), gradient.getType(), of))
      return emitOpError() << "(C1) gradient is " << gradient.getType()
                           << ", expected " << of.getType();
  return success();
}
