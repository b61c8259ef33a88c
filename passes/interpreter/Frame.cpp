// State, step inputs, and who evaluates what is neither.
#include "passes/interpreter/Frame.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {

std::string shapeText(ArrayRef<int64_t> shape) {
  auto sizes = llvm::map_to_vector(
      shape, [](int64_t size) { return std::to_string(size); });
  return "[" + llvm::join(sizes, ", ") + "]";
}

static LogicalResult checkType(Operation *op, Type type) {
  if (type.isIntOrFloat())
    return success();
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.getElementType().isIntOrFloat())
    return op->emitOpError("has a value of type ")
           << type << ", expected a tensor of numbers or a number";
  if (!tensor.hasStaticShape())
    return op->emitOpError("has a value of type ")
           << type << ", whose sizes are not known; bind the model first";
  int64_t elements = 1;
  if (llvm::is_contained(tensor.getShape(), 0))
    return op->emitOpError("has a value of type ")
           << type << ", which has no elements";
  for (int64_t size : tensor.getShape())
    if (llvm::MulOverflow(elements, size, elements) ||
        elements > Interpreter::maxElements)
      return op->emitOpError("has a value of type ")
             << type << ", more than the " << Interpreter::maxElements
             << " elements that can be interpreted";
  return success();
}

LogicalResult checkTypes(Operation *op, TypeRange types) {
  return success(llvm::all_of(
      types, [&](Type type) { return succeeded(checkType(op, type)); }));
}

//===-- state ---------------------------------------------------------------//

static LogicalResult checkShape(Operation *op, const StateKey &key,
                                const Tensor &kept, ArrayRef<int64_t> wanted) {
  if (kept.getShape() == wanted)
    return success();
  return op->emitOpError("uses ")
         << key.text() << ", whose shape is " << shapeText(kept.getShape())
         << ", expected " << shapeText(wanted);
}

Results Frame::readState(Operation *op, const StateKey &key) {
  Type type = op->getResult(0).getType();
  if (startsAtZero(key.kind))
    interpreter.state.try_emplace(key, Tensor::zeros(type));
  auto known = interpreter.state.find(key);
  if (known == interpreter.state.end())
    return op->emitOpError("reads ") << key.text() << ", which has no value";
  if (failed(checkShape(op, key, known->second,
                        cast<RankedTensorType>(type).getShape())))
    return failure();
  return Tensors{known->second};
}

Results Frame::readParameter(ParameterOp op) {
  bool hasWeight =
      interpreter.state.count({StateKind::weight, op.getName().str()});
  return readState(op, {hasWeight ? StateKind::weight : StateKind::master,
                        op.getName().str()});
}

/// 1 - base^t of the t-th step, which `step` counts from 0.
Results Frame::readBiasCorrection(StepInputOp op) {
  Results step = readInput(op, StepInput::step);
  if (failed(step))
    return failure();
  // In the plan the base is an f32.
  double base = static_cast<float>(op.getBase()->convertToDouble());
  return Tensors{Tensor::scalar(1 - std::pow(base, step->front()[0] + 1))};
}

Results Frame::readInput(Operation *op, StepInput kind) {
  auto known = interpreter.inputs.find(kind);
  if (known == interpreter.inputs.end())
    return op->emitOpError("reads step input ")
           << stringifyStepInput(kind) << ", which has no value";
  return Tensors{Tensor::scalar(known->second)};
}

/// Whether `part` lies within `whole` along dim `position` from `offset` on.
static bool liesWithin(const Tensor &whole, const Tensor &part,
                       int64_t position, int64_t offset) {
  SmallVector<int64_t> sizes(part.getShape());
  if (position < 0 || offset < 0)
    return false;
  if (sizes.size() + 1 == whole.getShape().size())
    sizes.insert(sizes.begin() + position, 1);
  if (sizes.size() != whole.getShape().size() ||
      offset > whole.getDimSize(position) - sizes[position])
    return false;
  sizes[position] = whole.getDimSize(position);
  return ArrayRef(sizes) == whole.getShape();
}

Results Frame::assign(AssignOp op, const Tensor &value) {
  StateKey key(op.getKey());
  if (!op.getDim()) {
    interpreter.state[key] = value;
    return Tensors{};
  }
  // A range: the whole is read before, so its type names the dim.
  for (StateOp read : op->getParentOfType<func::FuncOp>().getOps<StateOp>()) {
    auto whole = tensorType(read.getResult());
    int64_t position = dimsOf(whole).find(op.getDimAttr());
    auto kept = interpreter.state.find(key);
    if (!(read.getKey() == op.getKey()) || kept == interpreter.state.end())
      continue;
    if (!liesWithin(kept->second, value, position, op.getOffset()))
      return op.emitOpError("writes a range of ")
             << shapeText(value.getShape()) << " at " << op.getOffset()
             << " of dim '" << *op.getDim() << "', which is not within "
             << whole;
    writeSlice(kept->second, value, position, op.getOffset());
    return Tensors{};
  }
  return op.emitOpError("writes a range of ")
         << key.text() << ", which no `state` in this function reads";
}

Results Frame::accumulate(AccumulateOp op, const Tensor &value) {
  StateKey key(op.getKey());
  auto [entry, isNew] = interpreter.state.try_emplace(key, value);
  if (isNew)
    return Tensors{};
  Tensor &sum = entry->second;
  if (failed(checkShape(op, key, sum, value.getShape())))
    return failure();
  for (int64_t i = 0; i < value.size(); ++i)
    sum[i] = key.kind == StateKind::magnitude
                 ? std::max<double>(sum[i], value[i])
                 : sum[i] + value[i];
  return Tensors{};
}

//===-- ops -----------------------------------------------------------------//

static Results evaluateConstant(arith::ConstantOp op) {
  if (auto number = dyn_cast<FloatAttr>(op.getValue()))
    return Tensors{Tensor::scalar(number.getValueAsDouble())};
  if (auto integer = dyn_cast<IntegerAttr>(op.getValue()))
    return Tensors{
        Tensor::scalar(static_cast<double>(integer.getValue().getSExtValue()))};
  return op.emitOpError("cannot be interpreted, expected a number");
}

static Results evaluateCall(func::CallOp call, const Tensors &x) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  if (!callee || callee.isExternal())
    return call.emitOpError("calls a function without a body");
  return evaluateFunction(callee, x);
}

const Evaluators &Evaluators::all() {
  static const Evaluators evaluators = [] {
    Evaluators made;
    for (auto add : {addAttention, addElementwise, addExpertRows, addExperts,
                     addFused, addHeadLoss, addMovement, addProducts,
                     addRouting, addSlots, addTables})
      add(made);
    return made;
  }();
  return evaluators;
}

Results Frame::evaluateOp(Operation *op, const Tensors &x) {
  if (const Evaluators::Function *evaluate = Evaluators::all().find(op))
    return (*evaluate)(op, x, *this);
  return llvm::TypeSwitch<Operation *, Results>(op)
      .Case([&](func::CallOp call) { return evaluateCall(call, x); })
      .Case([&](ParameterOp read) { return readParameter(read); })
      .Case([&](StateOp read) { return readState(op, read.getKey()); })
      .Case([&](StepInputOp read) {
        return read.getBase() ? readBiasCorrection(read)
                              : readInput(op, read.getKind());
      })
      .Case([&](AssignOp write) { return assign(write, x[0]); })
      .Case([&](AccumulateOp add) { return accumulate(add, x[0]); })
      .Case([&](arith::ConstantOp constant) {
        return evaluateConstant(constant);
      })
      .Default([](Operation *other) -> Results {
        return other->emitOpError("cannot be interpreted");
      });
}

LogicalResult Frame::visit(Operation &op) {
  Results results = evaluateOp(&op, get(op.getOperands()));
  if (failed(results))
    return failure();
  for (auto [value, tensor] : llvm::zip_equal(op.getResults(), *results))
    set(value, std::move(tensor));
  return success();
}

} // namespace meshwork::interpreter
