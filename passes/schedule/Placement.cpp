// Where tensors lie. How buffers of their own are laid out: Rooms.cpp.
#include "passes/schedule/Placement.h"
#include "dialects/transformer/Facts.h"
#include "meshwork/Plan/StateNames.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

int64_t elementBytes(const Place &place) {
  return place.element.getIntOrFloatBitWidth() / 8;
}

int64_t bytesOf(const Place &place) {
  return ShapedType::getNumElements(place.shape) * elementBytes(place);
}

Placement::Placement(ProgramOp program, ModuleOp module, int64_t rowBytes)
    : program(program), builder(program.getContext()), loc(program.getLoc()),
      rowBytes(rowBytes) {
  gradient = gradientTypeOf(module);
  mixed = module
              .walk([](transformer::ParameterOp op) {
                return tensorType(op.getResult()).getElementType().isF32()
                           ? WalkResult::advance()
                           : WalkResult::interrupt();
              })
              .wasInterrupted();
  mesh = mesh::meshOf(module);
  noteStates(module);
}

void Placement::noteStates(ModuleOp module) {
  auto note = [&](StateKey key, Operation *op) {
    if (auto sharding = op->getAttrOfType<mesh::ShardingAttr>("mesh.stored"))
      known.try_emplace(key, Stored{tensorType(op->getResult(0)), sharding});
  };
  module.walk([&](Operation *op) {
    if (auto parameter = dyn_cast<transformer::ParameterOp>(op))
      note({StateKind::weight, parameter.getName()}, op);
    else if (auto state = dyn_cast<StateOp>(op))
      note(state.getKey(), op);
  });
}

Place Placement::persistent(StringRef name, BufferKind kind,
                            ArrayRef<int64_t> shape, Type element) {
  return buffer(name, kind, true, shape, element);
}

Place Placement::copyOfWeight(Value value) {
  auto type = tensorType(value);
  return buffer("weight of the step", BufferKind::weights, true,
                type.getShape(), type.getElementType(), rowElementsOf(value),
                isMultiplied(value));
}

Place Placement::temporary(Value value) {
  auto type = tensorType(value);
  bool isScratch =
      !dimsOf(type).getNames().empty() && dimsOf(type).getNames()[0] == "chunk";
  return buffer(("t" + Twine(numTemporaries++)).str(),
                isScratch ? BufferKind::workspace : BufferKind::activations,
                false, type.getShape(), type.getElementType(),
                isScratch ? 0 : rowElementsOf(value),
                !isScratch && isMultiplied(value));
}

Place Placement::temporary(const Place &place, ArrayRef<int64_t> order) {
  auto shape =
      llvm::map_to_vector(order, [&](int64_t dim) { return place.shape[dim]; });
  Place result = buffer(("t" + Twine(numTemporaries++)).str(),
                        BufferKind::activations, false, shape, place.element);
  auto strides = result.strides;
  result.shape = place.shape;
  for (auto [dim, stride] : llvm::zip_equal(order, strides))
    result.strides[dim] = stride;
  return result;
}

int64_t Placement::groupSize(ArrayAttr axes) const {
  return mesh.product(llvm::to_vector(axes.getAsRange<StringAttr>()));
}

Place Placement::block(const Place &whole, int64_t dim, int64_t size,
                       ArrayAttr axes) {
  Place part = whole;
  part.shape[dim] = size;
  part.shifts.push_back({axes, size * whole.strides[dim]});
  return part;
}

/// In f32 the master weight is the weight, or this rank's block of it where one
/// more split of a dim makes it so.
FailureOr<Place> Placement::masterOf(StringRef name) {
  Stored weight = stored({StateKind::weight, name}),
         master = stored({StateKind::master, name});
  if (!weight.sharding || !master.sharding)
    return failure();
  Place whole = state({StateKind::weight, name}, weight.type);
  if (weight.sharding == master.sharding)
    return whole;
  for (auto [i, w, m] :
       llvm::enumerate(weight.sharding.getDims(), master.sharding.getDims())) {
    if (w == m)
      continue;
    ArrayRef<StringAttr> more = m.getAxes().drop_front(w.getAxes().size());
    int64_t size = master.type.getDimSize(i);
    if (size * mesh.product(more) != weight.type.getDimSize(i))
      return failure();
    SmallVector<Attribute> axes(more);
    return block(whole, i, size, builder.getArrayAttr(axes));
  }
  return failure();
}

Place Placement::state(StateKey key, RankedTensorType type) {
  if (auto known = states.find(key); known != states.end())
    return known->second;
  if (key.kind == StateKind::master && !mixed) {
    FailureOr<Place> inWeight = masterOf(key.name);
    if (failed(inWeight) && !stored({StateKind::weight, key.name}).sharding)
      inWeight = state({StateKind::weight, key.name}, type);
    if (succeeded(inWeight))
      return states[key] = *inWeight;
  }
  BufferKind kind = BufferKind::optimizer;
  Type element = builder.getF32Type();
  switch (key.kind) {
  case StateKind::weight:
    kind = BufferKind::weights;
    if (mixed)
      element = builder.getBF16Type();
    break;
  case StateKind::gradient:
    kind = BufferKind::gradients;
    element = gradient;
    break;
  case StateKind::magnitude: // and summed, so to say, like one
    kind = BufferKind::gradients;
    break;
  case StateKind::loss:
  case StateKind::grad_norm:
  case StateKind::saturated:
    kind = BufferKind::results;
    break;
  case StateKind::master:
    break;
  case StateKind::optimizer:
    element = type.getElementType();
    break;
  }
  bool mayGrow =
      key.kind == StateKind::weight || key.kind == StateKind::gradient;
  return states[key] = buffer(plan::stateName(key.name, key.role()), kind, true,
                              type.getShape(), element, 0, mayGrow);
}

Place Placement::input(InputKind kind) {
  auto [known, isNew] = inputs.try_emplace(kind);
  bool isNumber = kind == InputKind::learning_rate;
  if (isNew)
    known->second =
        buffer(stringifyInputKind(kind), BufferKind::input, true,
               isNumber ? ArrayRef<int64_t>() : ArrayRef<int64_t>(3),
               isNumber ? Type(builder.getF32Type()) : builder.getI32Type());
  return known->second;
}

Place Placement::biasCorrection(double base) {
  auto [known, isNew] = corrections.try_emplace(base);
  SmallString<16> digits;
  APFloat(base).toString(digits);
  if (isNew)
    known->second = buffer(("bias correction of " + digits).str(),
                           BufferKind::input, true, {}, builder.getF32Type());
  return known->second;
}

Place Placement::stepInput(StepInputOp op) {
  StepInput kind = op.getKind();
  if (kind == StepInput::learning_rate)
    return input(InputKind::learning_rate);
  if (kind == StepInput::bias_correction)
    return biasCorrection(op.getBase()->convertToDouble());
  // Three numbers side by side. Those of a microbatch are gone when the update
  // runs, which has some of its own.
  bool ofUpdate = op->getParentOfType<func::FuncOp>().getName() == "update";
  Place whole = input(ofUpdate ? InputKind::update_random : InputKind::random);
  int64_t at =
      static_cast<int64_t>(kind) - static_cast<int64_t>(StepInput::seed);
  return Place{whole.buffer, at, {}, {}, whole.element};
}

Place Placement::part(const Place &whole, RankedTensorType wholeType,
                      StringAttr dim, int64_t offset, RankedTensorType part) {
  int64_t position = dimsOf(wholeType).find(dim);
  Place result = whole;
  result.offset += offset * whole.strides[position];
  result.shape = SmallVector<int64_t>(part.getShape());
  if (part.getRank() < wholeType.getRank())
    result.strides.erase(result.strides.begin() + position);
  return result;
}

Value Placement::view(OpBuilder &builder, Location loc, const Place &place) {
  auto layout = StridedLayoutAttr::get(builder.getContext(), 0, place.strides);
  auto type = MemRefType::get(place.shape, place.element, layout);
  int64_t width = elementBytes(place);
  SmallVector<Attribute> shifts;
  for (const PlaceShift &shift : place.shifts)
    shifts.push_back(ShiftAttr::get(builder.getContext(), shift.axes,
                                    shift.elements * width));
  SmallVector<int64_t> advances;
  for (int64_t elements : place.advances)
    advances.push_back(elements * width);
  return ViewOp::create(
      builder, loc, type, place.buffer,
      builder.getI64IntegerAttr(place.offset * width),
      shifts.empty() ? ArrayAttr() : builder.getArrayAttr(shifts),
      advances.empty() ? DenseI64ArrayAttr()
                       : builder.getDenseI64ArrayAttr(advances));
}

FailureOr<Place> Placement::of(Value value) {
  if (auto known = places.find(value); known != places.end())
    return known->second;
  FailureOr<Place> place = find(value);
  if (succeeded(place))
    places[value] = *place;
  return place;
}

LogicalResult Placement::takeOver(Value operand, Value result) {
  FailureOr<Place> place = of(operand);
  if (failed(place))
    return failure();
  if (!operand.hasOneUse() ||
      isa_and_nonnull<StateOp, transformer::ParameterOp, SliceOp>(
          operand.getDefiningOp()))
    return emitError(operand.getLoc()) << "a sum of " << operand.getType()
                                       << " is added to, but has other uses";
  set(result, *place);
  return success();
}

/// The state that `assign` writes, or its part.
FailureOr<Place> Placement::assigned(Value value, AssignOp assign) {
  StateKey key = assign.getKey();
  if (!assign.getDim())
    return state(key, tensorType(value));
  for (auto op : assign->getParentOfType<func::FuncOp>().getOps<StateOp>())
    if (op.getKey() == key)
      return part(state(key, op.getType()), op.getType(), assign.getDimAttr(),
                  assign.getOffset(), tensorType(value));
  return assign.emitOpError("writes part of a state that nothing here reads");
}

/// Blocks that are gathered into a state are made where they go.
FailureOr<Place> Placement::gathered(mesh::AllGatherOp gather) {
  auto whole = tensorType(gather.getResult()),
       part = tensorType(gather.getInput());
  int64_t dim = gather.getDim(), size = part.getDimSize(dim);
  bool isAssigned = llvm::any_of(gather->getUsers(), llvm::IsaPred<AssignOp>);
  if (!isAssigned ||
      whole.getDimSize(dim) != size * groupSize(gather.getAxes()))
    return failure();
  FailureOr<Place> place = of(gather.getResult());
  if (failed(place))
    return failure();
  return block(*place, dim, size, gather.getAxes());
}

FailureOr<Place> Placement::find(Value value) {
  auto type = tensorType(value);
  Operation *op = value.getDefiningOp();
  if (auto slice = dyn_cast_or_null<SliceOp>(op)) {
    FailureOr<Place> whole = of(slice.getInput());
    if (failed(whole))
      return failure();
    return part(*whole, tensorType(slice.getInput()), slice.getDimAttr(),
                slice.getOffset(), type);
  }
  if (auto parameter = dyn_cast_or_null<transformer::ParameterOp>(op))
    return state({StateKind::weight, parameter.getName()}, type);
  if (auto read = dyn_cast_or_null<StateOp>(op))
    return state(read.getKey(), type);
  if (auto input = dyn_cast_or_null<StepInputOp>(op))
    return stepInput(input);
  for (Operation *user : value.getUsers()) {
    if (auto gather = dyn_cast<mesh::AllGatherOp>(user)) {
      FailureOr<Place> block = gathered(gather);
      if (succeeded(block))
        return block;
    }
    if (auto assign = dyn_cast<AssignOp>(user))
      return assigned(value, assign);
    if (isa<YieldOp>(user))
      return yielded(value, cast<transformer::RepeatOp>(user->getParentOp()));
    auto unslice = dyn_cast<UnsliceOp>(user);
    if (!unslice)
      continue;
    FailureOr<Place> whole = of(unslice.getResult());
    if (failed(whole))
      return failure();
    for (auto [candidate, offset] :
         llvm::zip_equal(unslice.getParts(), unslice.getOffsets()))
      if (candidate == value)
        return part(*whole, tensorType(unslice.getResult()),
                    unslice.getDimAttr(), offset, type);
  }
  if (auto gather = dyn_cast_or_null<mesh::AllGatherOp>(op);
      gather && gather.getInput().getDefiningOp() &&
      (isa<transformer::ParameterOp>(gather.getInput().getDefiningOp()) ||
       isOfStep(gather.getInput().getDefiningOp())))
    return buffer(("t" + Twine(numTemporaries++)).str(),
                  BufferKind::communication, false, type.getShape(),
                  type.getElementType(), 0, isMultiplied(value));
  return temporary(value);
}

} // namespace meshwork::schedule
