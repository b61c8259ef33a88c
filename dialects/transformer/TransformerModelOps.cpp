// Model ops: verifiers, and what they are made of.
#include "dialects/transformer/Dims.h"
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/FileForms.h"
#include "dialects/transformer/Transformer.h"
#include <cmath>

using namespace mlir;
using namespace meshwork::transformer;

namespace {

Value constant(ImplicitLocOpBuilder &b, double value) {
  return arith::ConstantOp::create(
      b, b.getF32FloatAttr(static_cast<float>(value)));
}

/// Elements of `type`: those a norm averages over.
double elementCount(Value value) {
  return static_cast<double>(tensorType(value).getNumElements());
}

LogicalResult verifySubspace(Operation *op, Value part, Value space,
                             StringRef what) {
  if (isSubspace(tensorType(part), tensorType(space)))
    return success();
  return op->emitOpError() << "(C1) " << what << " " << part.getType()
                           << " has a dim that " << space.getType()
                           << " lacks or has with another size";
}

LogicalResult verifyEpsilon(Operation *op, const APFloat &epsilon) {
  if (epsilon.isNegative() || epsilon.isZero() || !epsilon.isFinite())
    return op->emitOpError() << "(C2) epsilon is " << epsilon.convertToDouble()
                             << ", expected a positive number";
  return success();
}
} // namespace

//===-- parameter -----------------------------------------------------------//

ArrayRef<int64_t> ParameterOp::getWholeShape() {
  return getGlobalShape() ? *getGlobalShape()
                          : tensorType(getResult()).getShape();
}
ArrayRef<int64_t> ParameterOp::getShapeInFile() {
  return getFileShape() ? *getFileShape() : getWholeShape();
}

/// Whether initial values can be drawn; label C4.
static LogicalResult verifyInit(ParameterOp op) {
  InitAttr init = op.getInit();
  double a = init.getA().getValueAsDouble(), b = init.getB().getValueAsDouble();
  if (!std::isfinite(a) || !std::isfinite(b))
    return op.emitOpError() << "(C4) init " << init << " is not finite";
  if (init.getKind() == InitKind::normal && b < 0)
    return op.emitOpError() << "(C4) init has standard deviation " << b
                            << ", expected at least 0";
  if (init.getKind() == InitKind::uniform && a > b)
    return op.emitOpError() << "(C4) init is uniform from " << a << " to " << b
                            << ", expected low before high";
  return success();
}

LogicalResult ParameterOp::verify() {
  auto type = tensorType(getResult());
  if (!type.hasStaticShape())
    return emitOpError() << "(C1) is " << type << ", expected a static shape";
  if (getName().empty())
    return emitOpError() << "(C3) has an empty name";
  int64_t elements = 1, inFile = 1;
  for (auto [shape, count] : {std::pair(getShapeInFile(), &inFile),
                              std::pair(getWholeShape(), &elements)})
    for (int64_t size : shape)
      if (size <= 0 || llvm::MulOverflow(*count, size, *count))
        return emitOpError() << "(C2) shape [" << shape
                             << "] has an empty dim or 2^63 elements or more";
  if (elements != inFile)
    return emitOpError() << "(C2) file_shape has " << inFile
                         << " elements, the parameter " << elements;
  if (auto layer = getLayerAttr();
      layer && (layer.getInt() < 0 || layer.getInt() >= mostLayers))
    return emitOpError() << "(C5) is of layer " << layer.getInt()
                         << ", expected 0 to " << mostLayers - 1;
  if (getUntrained() && !type.getElementType().isF32())
    return emitOpError() << "(C8) is untrained and " << type
                         << ", expected f32";
  if (failed(verifyFiles(*this)))
    return failure();
  return verifyInit(*this);
}

bool ParameterOp::staysF32(unsigned) { return getUntrained(); }

//===-- elementwise ---------------------------------------------------------//

template <typename Op> static LogicalResult verifyBinary(Op op) {
  if (failed(verifySubspace(op, op.getLhs(), op.getResult(), "operand")))
    return failure();
  return verifySubspace(op, op.getRhs(), op.getResult(), "operand");
}
LogicalResult AddOp::verify() { return verifyBinary(*this); }
LogicalResult SubOp::verify() { return verifyBinary(*this); }
LogicalResult MulOp::verify() { return verifyBinary(*this); }

template <typename Scalar, typename Op>
static Value decomposeBinary(Op op, OpBuilder &builder) {
  return buildMap(builder, op.getLoc(), op.getType(),
                  {op.getLhs(), op.getRhs()},
                  [](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
                    return Scalar::create(b, x[0], x[1]);
                  });
}
Value AddOp::decompose(OpBuilder &builder) {
  return decomposeBinary<arith::AddFOp>(*this, builder);
}
Value SubOp::decompose(OpBuilder &builder) {
  return decomposeBinary<arith::SubFOp>(*this, builder);
}
Value MulOp::decompose(OpBuilder &builder) {
  return decomposeBinary<arith::MulFOp>(*this, builder);
}

/// `x`, or `bound` where it is larger. A NaN stays.
static Value atMost(ImplicitLocOpBuilder &b, Value x, double bound) {
  Value isLarger = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x,
                                         constant(b, bound));
  return arith::SelectOp::create(b, isLarger, constant(b, bound), x);
}

/// x / 2 (1 + tanh(x (s + c x^2))). From x^2 = 100 on tanh is 1 to the last
/// bit; unbounded, x^2 overflows and the derivative is 0 * inf.
static Value geluTanh(ImplicitLocOpBuilder &b, Value x) {
  double scale = std::sqrt(2.0 / M_PI);
  Value square = atMost(b, arith::MulFOp::create(b, x, x), 100);
  Value slope = arith::AddFOp::create(
      b, arith::MulFOp::create(b, square, constant(b, scale * 0.044715)),
      constant(b, scale));
  Value t = math::TanhOp::create(b, arith::MulFOp::create(b, x, slope));
  Value half = arith::MulFOp::create(b, x, constant(b, 0.5));
  return arith::MulFOp::create(b, half,
                               arith::AddFOp::create(b, t, constant(b, 1)));
}

static Value geluExact(ImplicitLocOpBuilder &b, Value x) {
  Value e = math::ErfOp::create(
      b, arith::MulFOp::create(b, x, constant(b, std::sqrt(0.5))));
  Value half = arith::MulFOp::create(b, x, constant(b, 0.5));
  return arith::MulFOp::create(b, half,
                               arith::AddFOp::create(b, e, constant(b, 1)));
}

/// 1 / (1 + e^-x), by z = e^-|x|: 1 / (1 + z), or z / (1 + z) where x is
/// negative. e^-x would overflow from x = -88.7 on, and its adjoint be 0 * inf.
static Value sigmoid(ImplicitLocOpBuilder &b, Value x) {
  Value one = constant(b, 1);
  Value isNegative =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, constant(b, 0));
  Value z = math::ExpOp::create(
      b,
      arith::SelectOp::create(b, isNegative, x, arith::NegFOp::create(b, x)));
  return arith::DivFOp::create(b,
                               arith::SelectOp::create(b, isNegative, z, one),
                               arith::AddFOp::create(b, z, one));
}

static Value silu(ImplicitLocOpBuilder &b, Value x) {
  return arith::MulFOp::create(b, x, sigmoid(b, x));
}

/// A NaN stays one.
static Value relu(ImplicitLocOpBuilder &b, Value x) {
  Value zero = constant(b, 0);
  Value isOff = arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, x, zero);
  return arith::SelectOp::create(b, isOff, zero, x);
}

Value meshwork::transformer::activated(ImplicitLocOpBuilder &b,
                                       Activation function, Value x) {
  switch (function) {
  case Activation::gelu_tanh:
    return geluTanh(b, x);
  case Activation::gelu:
    return geluExact(b, x);
  case Activation::silu:
    return silu(b, x);
  case Activation::relu:
    return relu(b, x);
  case Activation::sigmoid:
    return sigmoid(b, x);
  }
  llvm_unreachable("all activations are handled");
}

Value ActivateOp::decompose(OpBuilder &builder) {
  return buildMap(builder, getLoc(), getType(), getInput(),
                  [&](ImplicitLocOpBuilder &b, ValueRange x) {
                    return activated(b, getFunction(), x[0]);
                  });
}

//===-- softmax -------------------------------------------------------------//

LogicalResult SoftmaxOp::verify() {
  if (tensorType(getInput()).getElementType().isF32() &&
      !dimsOf(getInput()).getNames().empty())
    return success();
  return emitOpError() << "(C1) is of " << getInput().getType()
                       << ", expected f32 with a dim or more";
}

/// The largest is subtracted first, whose gradient cancels.
Value SoftmaxOp::decompose(OpBuilder &builder) {
  Value x = getInput();
  DimsAttr last = DimsAttr::get(getContext(), dimsOf(x).getNames().take_back());
  Value most = ReduceOp::create(builder, getLoc(), Reduction::max, x, last);
  Value powers = buildMap(builder, getLoc(), x.getType(), {x, most},
                          [](ImplicitLocOpBuilder &b, ValueRange e) -> Value {
                            return math::ExpOp::create(
                                b, arith::SubFOp::create(b, e[0], e[1]));
                          });
  Value sum = ReduceOp::create(builder, getLoc(), Reduction::add, powers, last);
  return buildMap(builder, getLoc(), x.getType(), {powers, sum},
                  [](ImplicitLocOpBuilder &b, ValueRange e) -> Value {
                    return arith::DivFOp::create(b, e[0], e[1]);
                  });
}

//===-- norms ---------------------------------------------------------------//

template <typename Op> static LogicalResult verifyNorm(Op op) {
  if (failed(verifySubspace(op, op.getWeight(), op.getInput(), "weight")))
    return failure();
  if (!tensorType(op.getWeight()).hasStaticShape())
    return op.emitOpError() << "(C1) weight is " << op.getWeight().getType()
                            << ", expected a static shape";
  return verifyEpsilon(op, op.getEpsilon());
}
LogicalResult LayerNormOp::verify() { return verifyNorm(*this); }
LogicalResult RmsNormOp::verify() { return verifyNorm(*this); }

/// Sum over the weight's dims of the squares of `x`.
static Value sumOfSquares(OpBuilder &builder, Location loc, Value x,
                          DimsAttr dims) {
  Value squares = buildMap(builder, loc, x.getType(), x,
                           [](ImplicitLocOpBuilder &b, ValueRange e) -> Value {
                             return arith::MulFOp::create(b, e[0], e[0]);
                           });
  return ReduceOp::create(builder, loc, Reduction::add, squares, dims);
}

/// 1 / sqrt(sum / count + epsilon) * x * weight, if there is one.
static Value normalize(ImplicitLocOpBuilder &b, Value x, Value sum,
                       Value weight, double count, double epsilon) {
  Value mean = arith::MulFOp::create(b, sum, constant(b, 1 / count));
  Value scale = math::RsqrtOp::create(
      b, arith::AddFOp::create(b, mean, constant(b, epsilon)));
  Value scaled = arith::MulFOp::create(b, x, scale);
  return weight ? Value(arith::MulFOp::create(b, scaled, weight)) : scaled;
}

/// `x` less `sum` / `count`.
static Value center(OpBuilder &builder, Location loc, Value x, Value sum,
                    double count) {
  return buildMap(builder, loc, x.getType(), {x, sum},
                  [&](ImplicitLocOpBuilder &b, ValueRange e) -> Value {
                    return arith::SubFOp::create(
                        b, e[0],
                        arith::MulFOp::create(b, e[1], constant(b, 1 / count)));
                  });
}

/// What LayerNorm multiplies by its weight: `x` less its mean, and the sum of
/// the squares of that. The variance does not change with the mean, as what is
/// centered adds up to nothing. Where that is said, the gradient's two sums of
/// a row need nothing of each other.
static std::pair<Value, Value> centeredWithSquares(OpBuilder &builder,
                                                   Location loc, Value x,
                                                   DimsAttr dims,
                                                   double count) {
  Value sum = ReduceOp::create(builder, loc, Reduction::add, x, dims);
  Value fixed =
      buildMap(builder, loc, sum.getType(), sum,
               [](ImplicitLocOpBuilder &, ValueRange e) { return e[0]; });
  setConstant(fixed.getDefiningOp());
  Value centered = center(builder, loc, x, sum, count);
  Value squares =
      sumOfSquares(builder, loc, center(builder, loc, x, fixed, count), dims);
  return {centered, squares};
}

Value LayerNormOp::decompose(OpBuilder &builder) {
  double count = elementCount(getWeight()),
         epsilon = getEpsilon().convertToDouble();
  auto [centered, squares] = centeredWithSquares(builder, getLoc(), getInput(),
                                                 dimsOf(getWeight()), count);
  return buildMap(
      builder, getLoc(), getType(), {centered, squares, getWeight(), getBias()},
      [&](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
        return arith::AddFOp::create(
            b, normalize(b, x[0], x[1], x[2], count, epsilon), x[3]);
      });
}

LogicalResult StandardizeOp::verify() {
  auto type = tensorType(getInput());
  if (type.getRank() == 0 || type.isDynamicDim(type.getRank() - 1))
    return emitOpError() << "(C1) input is " << type
                         << ", expected a last dim with a size";
  return verifyEpsilon(*this, getEpsilon());
}

Value StandardizeOp::decompose(OpBuilder &builder) {
  auto count = static_cast<double>(tensorType(getInput()).getShape().back());
  double epsilon = getEpsilon().convertToDouble();
  DimsAttr last =
      DimsAttr::get(getContext(), dimsOf(getInput()).getNames().take_back());
  auto [centered, squares] =
      centeredWithSquares(builder, getLoc(), getInput(), last, count);
  return buildMap(builder, getLoc(), getType(), {centered, squares},
                  [&](ImplicitLocOpBuilder &b, ValueRange x) {
                    return normalize(b, x[0], x[1], /*weight=*/Value(), count,
                                     epsilon);
                  });
}

Value RmsNormOp::decompose(OpBuilder &builder) {
  double count = elementCount(getWeight()),
         epsilon = getEpsilon().convertToDouble();
  Value squares =
      sumOfSquares(builder, getLoc(), getInput(), dimsOf(getWeight()));
  return buildMap(builder, getLoc(), getType(),
                  {getInput(), squares, getWeight()},
                  [&](ImplicitLocOpBuilder &b, ValueRange x) {
                    return normalize(b, x[0], x[1], x[2], count, epsilon);
                  });
}

//===-- rope ----------------------------------------------------------------//

LogicalResult RopeOp::verify() {
  auto type = tensorType(getInput());
  int64_t tokens =
      dimsOf(type).find(StringAttr::get(getContext(), dims::tokens));
  if (tokens < 0 || tokens == type.getRank() - 1)
    return emitOpError() << "(C1) input is " << type
                         << ", expected a dim `sequence` and, last, another";
  int64_t headDim = type.getShape().back(),
          given = getInverseFrequencies().size();
  if (given < 1 || headDim < 2 * given)
    return emitOpError() << "(C2) the last dim is " << headDim
                         << " but there are " << given
                         << " inverse frequencies, expected 1 to "
                         << headDim / 2;
  return success();
}

/// `x` with all of its last dim turned.
static Value turned(OpBuilder &builder, RopeOp op, Value x) {
  auto type = tensorType(x);
  DimsAttr all = dimsOf(type);
  auto tokens = StringAttr::get(op.getContext(), dims::tokens);
  int64_t headDim = type.getShape().back(),
          sequence = type.getDimSize(all.find(tokens));
  auto rows = DimsAttr::get(
      op.getContext(), ArrayRef<StringAttr>{tokens, all.getNames().back()});
  Type table = namedType({sequence, headDim}, rows, builder.getF32Type());
  auto tables = RotaryTableOp::create(
      builder, op.getLoc(), table, table,
      /*positions=*/Value(), op.getInverseFrequencies(), op.getScale());
  Value rolled = RollOp::create(builder, op.getLoc(), type, x, headDim / 2);
  return buildMap(builder, op.getLoc(), type,
                  {x, rolled, tables.getCosine(), tables.getSine()},
                  [](ImplicitLocOpBuilder &b, ValueRange e) -> Value {
                    return arith::AddFOp::create(
                        b, arith::MulFOp::create(b, e[0], e[2]),
                        arith::MulFOp::create(b, e[1], e[3]));
                  });
}

/// `count` elements of the last dim, from `offset` on, under a name of its own.
static Value lastDimPart(OpBuilder &builder, Value x, StringRef suffix,
                         int64_t offset, int64_t count) {
  auto type = tensorType(x);
  SmallVector<StringAttr> names(dimsOf(type).getNames());
  SmallVector<int64_t> shape(type.getShape());
  StringAttr last = names.back();
  std::string name = (last.getValue() + suffix).str();
  while (dimsOf(type).find(builder.getStringAttr(name)) >= 0)
    name += "_";
  names.back() = builder.getStringAttr(name);
  shape.back() = count;
  Type part = namedType(shape, DimsAttr::get(type.getContext(), names),
                        type.getElementType());
  return SliceOp::create(builder, x.getLoc(), part, x, last, offset);
}

Value RopeOp::decompose(OpBuilder &builder) {
  int64_t headDim = tensorType(getInput()).getShape().back(),
          count = 2 * static_cast<int64_t>(getInverseFrequencies().size());
  if (count == headDim)
    return turned(builder, *this, getInput());
  Value first = turned(builder, *this,
                       lastDimPart(builder, getInput(), "_turned", 0, count));
  Value others =
      lastDimPart(builder, getInput(), "_kept", count, headDim - count);
  return UnsliceOp::create(builder, getLoc(), getType(),
                           ValueRange{first, others},
                           dimsOf(getInput()).getNames().back(),
                           builder.getDenseI64ArrayAttr({0, count}));
}

//===-- dropout -------------------------------------------------------------//

Value DropoutOp::decompose(OpBuilder &builder) {
  if (getRate().isZero())
    return getInput();
  SmallVector<Value> operands = {getInput()};
  Type scalar = RankedTensorType::get({}, builder.getI32Type());
  for (StepInput kind :
       {StepInput::seed, StepInput::step, StepInput::first_sample})
    operands.push_back(StepInputOp::create(builder, getLoc(), scalar, kind));
  uint32_t stream = randomStream(getName());
  return buildMap(builder, getLoc(), getType(), operands,
                  [&](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
                    Value mask = DropoutMaskOp::create(
                        b, b.getF32Type(), x[1], x[2], x[3], ValueRange(),
                        b.getI32IntegerAttr(stream), getRateAttr(),
                        DenseI64ArrayAttr(), ArrayAttr());
                    return arith::MulFOp::create(b, x[0], mask);
                  });
}

//===-- head_loss -----------------------------------------------------------//

static uint64_t headFlops(Value hidden, Value weight) {
  auto type = tensorType(hidden);
  return 2 * static_cast<uint64_t>(type.getNumElements()) *
         tensorType(weight).getDimSize(0);
}
uint64_t HeadLossOp::getFlops() { return headFlops(getHidden(), getWeight()); }
uint64_t HeadLossGradOp::getFlops() {
  return 3 * headFlops(getHidden(), getWeight());
}

//===-- auxiliary_loss ------------------------------------------------------//

LogicalResult AuxiliaryLossOp::verify() {
  if (getValue().getType() !=
      RankedTensorType::get({}, Float32Type::get(getContext())))
    return emitOpError() << "(C1) value is " << getValue().getType()
                         << ", expected tensor<f32>";
  if (!getCoefficient().isFinite())
    return emitOpError("(C1) coefficient is not finite");
  if (!StateKey::isSlot(getName()))
    return emitOpError()
           << "(C2) name is '" << getName()
           << "', expected at most 32 lower-case letters, digits and _, a "
              "letter first";
  return success();
}
