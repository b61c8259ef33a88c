// Verifiers of embedding, head and randomness: what types cannot say. The
// labels are those of the op's description.
#include "dialects/transformer/Dims.h"
#include "dialects/transformer/Facts.h"

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
  if (double cap = op.getCap().convertToDouble();
      !(cap >= 0 && cap <= std::numeric_limits<float>::max()))
    return op.emitOpError()
           << "(C2) cap is " << cap << ", expected a finite number from 0";
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

/// What is counted alone is kept in i32.
static LogicalResult verifyElement(Operation *op, StateKind kind, Type type,
                                   StringRef constraint) {
  if (kind == StateKind::metric || !getElementTypeOrSelf(type).isInteger(32))
    return success();
  return op->emitOpError() << constraint << " " << stringifyStateKind(kind)
                           << " is " << type << ", expected f32 or bf16";
}

LogicalResult StateOp::verify() {
  if (failed(verifySlot(*this, getKind(), getSlot())) ||
      failed(verifyElement(*this, getKind(), getType(), "(C3)")))
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
  if (failed(verifySlot(*this, getKind(), getSlot())))
    return failure();
  return verifyElement(*this, getKind(), getValue().getType(), "(C2)");
}

bool AccumulateOp::readsF32(unsigned) { return getKind() == StateKind::metric; }

LogicalResult AccumulateOp::verify() {
  if (!startsAtZero(getKind()))
    return emitOpError() << "(C1) adds to " << stringifyStateKind(getKind())
                         << ", expected gradient, loss, magnitude or metric";
  if (getExact() && getKind() != StateKind::metric)
    return emitOpError() << "(C3) adds up " << stringifyStateKind(getKind())
                         << " exactly, expected a metric";
  return verifySlot(*this, getKind(), getSlot(), "(C2)");
}
