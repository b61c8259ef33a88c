// Verifiers of attention, embedding, head and randomness: what types cannot
// say. The labels are those of the op's description.
#include "dialects/transformer/Dims.h"
#include "dialects/transformer/Facts.h"
#include <cmath>

using namespace mlir;
using namespace meshwork::transformer;

//===-- embedding -----------------------------------------------------------//

/// `rows` is [id dims..., row dims...] for a table [rows, row dims...].
static LogicalResult verifyEmbedding(Operation *op, RankedTensorType table,
                                     RankedTensorType ids,
                                     RankedTensorType rows) {
  auto dims = llvm::to_vector(dimsOf(ids).getNames());
  auto shape = llvm::to_vector(ids.getShape());
  if (table.getRank() >= 1) {
    llvm::append_range(dims, dimsOf(table).getNames().drop_front());
    llvm::append_range(shape, table.getShape().drop_front());
  }
  if (table.getRank() < 1 || rows.getShape() != ArrayRef(shape) ||
      dimsOf(rows).getNames() != ArrayRef(dims))
    return op->emitOpError() << "(C1) expected a table [rows, row dims...], "
                                "ids and [id dims..., row dims...], found "
                             << table << ", " << ids << ", " << rows;
  return success();
}

LogicalResult EmbeddingOp::verify() {
  if (failed(verifyEmbedding(*this, tensorType(getTable()),
                             tensorType(getIds()), tensorType(getResult()))))
    return failure();
  if (!getPaddingId())
    return success();
  auto padding = static_cast<int64_t>(*getPaddingId());
  int64_t rows = tensorType(getTable()).getDimSize(0);
  int64_t end = getFirstRow() ? INT32_MAX : std::min<int64_t>(rows, INT32_MAX);
  if (padding >= 0 && padding < end)
    return success();
  return emitOpError() << "(C2) expected a padding_id from 0 to below " << end
                       << ", found " << padding;
}
LogicalResult EmbeddingGradOp::verify() {
  return verifyEmbedding(*this, tensorType(getResult()), tensorType(getIds()),
                         tensorType(getGradient()));
}

//===-- attention -----------------------------------------------------------//

/// `type` is `of`; of attention to some of the keys it may be an f32 part of a
/// sum.
template <typename Op> static bool fits(Op op, Type type, RankedTensorType of) {
  return type == of ||
         (op.getKeys() &&
          type == withElement(of, Float32Type::get(op.getContext())));
}

template <typename Op> static LogicalResult verifyHeads(Op op) {
  auto q = tensorType(op.getQ()), k = tensorType(op.getK()),
       v = tensorType(op.getV());
  bool sharesRows = !op.getPositions();
  bool resultFits =
      op.getResult().getType() == q ||
      (isa<AttentionOp>(op) && fits(op, op.getResult().getType(), q));
  if (q.getRank() != 4 || k != v || k.getRank() != 4 ||
      q.getDimSize(0) != k.getDimSize(0) ||
      (sharesRows && q.getDimSize(1) != k.getDimSize(1)) ||
      q.getDimSize(3) != k.getDimSize(3) || !resultFits)
    return op.emitOpError()
           << "(C1) expected q, result [batch, sequence, heads, head_dim] and "
              "k, v [batch, sequence, kv_heads, "
              "head_dim], found "
           << q << ", " << k << ", " << v << ", " << op.getResult().getType();
  int64_t heads = q.getDimSize(2), kvHeads = k.getDimSize(2);
  if (kvHeads <= 0 || heads <= 0 || heads % kvHeads)
    return op.emitOpError()
           << "(C1) " << heads << " heads are not divisible by " << kvHeads
           << " kv_heads";
  ArrayRef<StringAttr> names = dimsOf(q).getNames();
  auto wanted = namedType(
      {q.getDimSize(0), heads, q.getDimSize(1)},
      DimsAttr::get(op.getContext(),
                    ArrayRef<StringAttr>{names[0], names[2], names[1]}),
      Float32Type::get(op.getContext()));
  if (op.getLse().getType() != wanted)
    return op.emitOpError() << "(C1) lse is " << op.getLse().getType()
                            << ", expected " << wanted;
  return success();
}

template <typename Op> static LogicalResult verifyDocuments(Op op) {
  if (!op.getDocuments())
    return success();
  auto q = tensorType(op.getQ());
  auto wanted = namedType(
      q.getShape().take_front(2),
      DimsAttr::get(op.getContext(), dimsOf(q).getNames().take_front(2)),
      IntegerType::get(op.getContext(), 32));
  if (op.getDocuments().getType() != wanted)
    return op.emitOpError()
           << "(C1) documents is " << op.getDocuments().getType()
           << ", expected " << wanted;
  if (!op.getCausal())
    return op.emitOpError()
           << "(C1) has documents but is not causal; where a document ends is "
              "not said, so a query would see those that follow";
  return success();
}

/// Which rows of the sequence `of` has.
template <typename Op>
static LogicalResult verifyRows(Op op, StringRef name, Value rows, Value of) {
  auto type = tensorType(of);
  auto wanted = namedType(
      type.getShape().slice(1, 1),
      DimsAttr::get(op.getContext(), dimsOf(type).getNames().slice(1, 1)),
      IntegerType::get(op.getContext(), 32));
  if (rows && rows.getType() != wanted)
    return op.emitOpError() << "(C1) has " << name << " " << rows.getType()
                            << ", expected " << wanted;
  return success();
}

template <typename Op> static LogicalResult verifyPositions(Op op) {
  if (failed(verifyRows(op, "positions", op.getPositions(), op.getQ())) ||
      failed(verifyRows(op, "keys", op.getKeys(), op.getK())))
    return failure();
  int64_t total = op.getTotalKeys();
  bool hasKeys = static_cast<bool>(op.getKeys());
  if (hasKeys ? total > 0 && op.getPositions() : total == 0)
    return success();
  return op.emitOpError()
         << "(C3) has " << (hasKeys ? "" : "no ") << "keys of " << total
         << (op.getPositions() ? "" : " and no positions")
         << "; keys stand beside positions and are of one key or more";
}

template <typename Op>
static LogicalResult verifyAttention(Op op, bool mayLackRandom) {
  if (failed(verifyHeads(op)) || failed(verifyDocuments(op)) ||
      failed(verifyPositions(op)))
    return failure();
  double rate = op.getDropoutRate().convertToDouble();
  if (!(rate >= 0 && rate < 1))
    return op.emitOpError() << "(C2) dropout rate is " << rate
                            << ", expected at least 0 and less than 1";
  size_t wanted = rate > 0 ? (op.getTotalHeads() ? 4 : 3) : 0,
         given = op.getRandom().size();
  if (given != wanted && !(given == 0 && mayLackRandom))
    return op.emitOpError()
           << "(C2) has " << given << " random operands at rate " << rate
           << ", expected " << wanted;
  for (Value random : op.getRandom())
    if (tensorType(random).getRank() != 0)
      return op.emitOpError() << "(C2) random operand is " << random.getType()
                              << ", expected tensor<i32>";
  if (static_cast<int64_t>(op.getWindow()) < 0)
    return op.emitOpError()
           << "(C2) window is " << static_cast<int64_t>(op.getWindow())
           << ", expected at least 0";
  if (!op.getScale().isFinite())
    return op.emitOpError() << "(C2) scale is not finite";
  return success();
}

LogicalResult AttentionOp::verify() {
  return verifyAttention(*this, /*mayLackRandom=*/true);
}

LogicalResult AttentionGradOp::verify() {
  if (failed(verifyAttention(*this, /*mayLackRandom=*/false)))
    return failure();
  std::pair<Value, Value> pairs[] = {{getGradient(), getQ()},
                                     {getDq(), getQ()},
                                     {getDk(), getK()},
                                     {getDv(), getV()}};
  for (auto [gradient, of] : pairs)
    if (gradient == getGradient()
            ? gradient.getType() != of.getType()
            : !fits(*this, gradient.getType(), tensorType(of)))
      return emitOpError() << "(C1) gradient is " << gradient.getType()
                           << ", expected " << of.getType();
  return success();
}

//===-- head_loss -----------------------------------------------------------//

template <typename Op> static LogicalResult verifyHead(Op op) {
  auto hidden = tensorType(op.getHidden()), weight = tensorType(op.getWeight()),
       targets = tensorType(op.getTargets());
  if (hidden.getRank() < 2 || weight.getRank() != 2)
    return op.emitOpError() << "(C1) expected hidden [tokens..., embed] and "
                               "weight [vocab, embed], found "
                            << hidden << " and " << weight;
  auto embed = dimsOf(hidden).getNames().back();
  auto wanted = dropDims(
      hidden, DimsAttr::get(op.getContext(), ArrayRef<StringAttr>(embed)),
      targets.getElementType());
  if (wanted != targets)
    return op.emitOpError() << "(C1) targets are " << targets << ", expected "
                            << wanted << " to match hidden";
  if (weight.getDimSize(1) != hidden.getShape().back() ||
      dimsOf(weight).getNames()[1] != embed)
    return op.emitOpError()
           << "(C1) weight " << weight << " does not end in hidden's last dim '"
           << embed.getValue() << "' of size " << hidden.getShape().back();
  if (op.getLoss().getType() !=
      RankedTensorType::get({}, Float32Type::get(op.getContext())))
    return op.emitOpError() << "(C1) loss is " << op.getLoss().getType()
                            << ", expected tensor<f32>";
  if (!op.getScale().isFinite())
    return op.emitOpError() << "(C2) scale is not finite";
  if (op.getCounted() && op.getCounted().getType() != op.getLoss().getType())
    return op.emitOpError() << "(C2) counted is " << op.getCounted().getType()
                            << ", expected tensor<f32>";
  return success();
}

LogicalResult HeadLossOp::verify() { return verifyHead(*this); }

LogicalResult HeadLossGradOp::verify() {
  if (failed(verifyHead(*this)))
    return failure();
  if (getDhidden().getType() != getHidden().getType() ||
      getDweight().getType() != getWeight().getType())
    return emitOpError() << "(C1) gradients are " << getDhidden().getType()
                         << " and " << getDweight().getType() << ", expected "
                         << getHidden().getType() << " and "
                         << getWeight().getType();
  bool isPart = static_cast<bool>(getFirstRow());
  if (isPart != getVocabAxes().has_value() || isPart != (getVocabulary() > 0))
    return emitOpError() << "(C3) has some of first_row, vocabulary and "
                            "vocab_axes, expected all or none";
  if (getRows() && !isPart)
    return emitOpError() << "(C3) has rows but no first_row";
  if (getValid() &&
      getValid().getType() !=
          withElement(getTargets().getType(), Float32Type::get(getContext())))
    return emitOpError() << "(C4) valid is " << getValid().getType()
                         << ", expected an f32 tensor with the dims of "
                         << getTargets().getType();
  return success();
}

//===-- rope, bodies, step inputs -------------------------------------------//

LogicalResult RotaryTableOp::verify() {
  auto type = tensorType(getCosine());
  auto tokens = StringAttr::get(getContext(), dims::tokens);
  if (type.getRank() != 2 || dimsOf(type).getNames()[1] == tokens ||
      !type.getElementType().isF32())
    return emitOpError() << "(C1) is " << type
                         << ", expected an f32 tensor of rows and, second, of "
                            "another dim than "
                         << tokens;
  int64_t given = getInverseFrequencies().size();
  if (type.getDimSize(1) != 2 * given)
    return emitOpError() << "(C2) the last dim is " << type.getDimSize(1)
                         << " but there are " << given
                         << " inverse frequencies";
  auto rows =
      namedType({type.getDimSize(0)},
                DimsAttr::get(getContext(), ArrayRef<StringAttr>(tokens)),
                IntegerType::get(getContext(), 32));
  if (getPositions() && getPositions().getType() != rows)
    return emitOpError() << "(C3) has positions " << getPositions().getType()
                         << ", expected " << rows;
  return success();
}

static LogicalResult verifyRate(Operation *op, const APFloat &given) {
  double rate = given.convertToDouble();
  if (rate >= 0 && rate < 1)
    return success();
  return op->emitOpError() << "(C1) rate is " << rate
                           << ", expected at least 0 and less than 1";
}
LogicalResult DropoutOp::verify() { return verifyRate(*this, getRate()); }
/// That the space and the offsets of a draw fit the map around it.
static LogicalResult verifySpace(DrawOpInterface op, StringRef label) {
  ArrayAttr dims = op.getDimsAttr();
  std::optional<ArrayRef<int64_t>> space = op.getSpace();
  size_t named = dims ? dims.size() : 0;
  auto error = [&] { return op->emitOpError() << "(" << label << ") "; };
  if (named != op.getOffsets().size() ||
      space.has_value() != static_cast<bool>(dims))
    return error() << "has " << op.getOffsets().size() << " offsets for "
                   << named << " dims";
  auto map = cast<MapOp>(op->getParentOp());
  if (!space || map.getNumResults() == 0)
    return success();
  auto part = tensorType(map.getResult(0));
  if (static_cast<int64_t>(space->size()) != part.getRank())
    return error() << "space has " << space->size() << " dims, expected "
                   << part.getRank();
  // Of one element, a part in another layout than blocks may have room for two.
  for (auto [whole, own] : llvm::zip_equal(*space, part.getShape()))
    if (whole < own && whole > 1)
      return error() << "space has a dim of " << whole << " elements, its part "
                     << own;
  for (StringAttr name : dims.getAsRange<StringAttr>())
    if (dimsOf(part).find(name) < 0)
      return error() << "names dim " << name << ", which " << part << " lacks";
  return success();
}
LogicalResult DropoutMaskOp::verify() {
  if (failed(verifyRate(*this, getRate())))
    return failure();
  return verifySpace(*this, "C2");
}
LogicalResult StochasticRoundOp::verify() { return verifySpace(*this, "C1"); }

LogicalResult IndexOp::verify() {
  // Verified before the map around it: that may lack results still.
  auto map = cast<MapOp>((*this)->getParentOp());
  if (map.getNumResults() > 0 &&
      dimsOf(map.getResult(0)).find(getDimAttr()) < 0)
    return emitOpError() << "(C1) names dim '" << getDim() << "', which "
                         << map.getResult(0).getType() << " lacks";
  return success();
}

LogicalResult StageListOp::verify() {
  auto stage = static_cast<int64_t>(getStage());
  if (stage < 0 || stage >= mostLayers)
    return emitOpError() << "(C1) is of stage " << stage
                         << ", expected one from 0 to " << mostLayers - 1;
  return success();
}

LogicalResult StepInputOp::verify() {
  bool counts = getKind() == StepInput::seed || getKind() == StepInput::step ||
                getKind() == StepInput::first_sample;
  Builder builder(getContext());
  auto wanted = RankedTensorType::get({}, counts ? Type(builder.getI32Type())
                                                 : Type(builder.getF32Type()));
  if (getType() != wanted)
    return emitOpError() << "(C1) is " << getType() << ", expected " << wanted;
  bool hasBase = getKind() == StepInput::bias_correction;
  double base = getBase() ? getBase()->convertToDouble() : 0;
  if (getBase().has_value() == hasBase && base >= 0 && base < 1)
    return success();
  InFlightDiagnostic diag = emitOpError() << "(C2) has ";
  if (getBase())
    diag << "base " << base;
  else
    diag << "no base";
  return diag << ", expected " << (hasBase ? "one from 0 to below 1" : "none");
}

//===-- state ---------------------------------------------------------------//

bool StateKey::isSlot(StringRef name) {
  return !name.empty() && name.size() <= 32 && llvm::isLower(name[0]) &&
         llvm::all_of(name, [](char c) {
           return llvm::isLower(c) || llvm::isDigit(c) || c == '_';
         });
}

static LogicalResult verifySlot(Operation *op, StateKind kind,
                                std::optional<StringRef> slot,
                                StringRef constraint = "(C1)") {
  bool has = kind == StateKind::optimizer || kind == StateKind::magnitude;
  if (slot.has_value() == has && (!has || StateKey::isSlot(*slot)))
    return success();
  InFlightDiagnostic diag = op->emitOpError()
                            << constraint << " " << stringifyStateKind(kind)
                            << " has ";
  if (slot)
    diag << "slot '" << *slot << "'";
  else
    diag << "no slot";
  return diag << ", expected "
              << (has ? "a name of at most 32 lower-case letters, digits and "
                        "_, a letter first"
                      : "none");
}

LogicalResult StateOp::verify() {
  if (failed(verifySlot(*this, getKind(), getSlot())))
    return failure();
  if (!getInitial())
    return success();
  if (getKind() != StateKind::optimizer || !getInitial()->isFinite())
    return emitOpError() << "(C2) " << stringifyStateKind(getKind())
                         << " is initially " << getInitialAttr()
                         << ", expected "
                         << (getKind() == StateKind::optimizer
                                 ? "a finite number"
                                 : "no initial value");
  return success();
}

LogicalResult AssignOp::verify() {
  return verifySlot(*this, getKind(), getSlot());
}

LogicalResult AccumulateOp::verify() {
  if (!startsAtZero(getKind()))
    return emitOpError() << "(C1) adds to " << stringifyStateKind(getKind())
                         << ", expected gradient, loss or magnitude";
  return verifySlot(*this, getKind(), getSlot(), "(C2)");
}
