// State, and what the runtime sets for all of a step.
#include "passes/schedule/States.h"
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/StepFunctions.h"
#include "meshwork/Plan/StateNames.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

States::States(ModuleOp module, Buffers &buffers)
    : buffers(buffers), builder(module.getContext()),
      gradient(gradientTypeOf(module)), mesh(mesh::meshOf(module)) {
  module.walk([&](Operation *op) {
    if (stateUseOf(op) != StateUse::reads)
      return;
    RankedTensorType type = tensorType(op->getResult(0));
    mixed |=
        isa<transformer::ParameterOp>(op) && !type.getElementType().isF32();
    if (auto sharding = op->getAttrOfType<mesh::ShardingAttr>("mesh.stored"))
      known.try_emplace(*usedStateOf(op), Stored{type, sharding});
  });
}

/// In f32 the master weight is the weight, or this rank's block of it where one
/// more split of a dim makes it so.
FailureOr<Place> States::masterOf(StringRef name) {
  Stored weight = stored({StateKind::weight, name}),
         master = stored({StateKind::master, name});
  if (!weight.sharding || !master.sharding)
    return failure();
  Place whole = of({StateKind::weight, name}, weight.type);
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
    return blockOf(whole, i, size, builder.getArrayAttr(axes));
  }
  return failure();
}

Place States::of(StateKey key, RankedTensorType type) {
  if (auto known = places.find(key); known != places.end())
    return known->second;
  if (key.kind == StateKind::master && !mixed) {
    FailureOr<Place> inWeight = masterOf(key.name);
    if (failed(inWeight) && !stored({StateKind::weight, key.name}).sharding)
      inWeight = of({StateKind::weight, key.name}, type);
    if (succeeded(inWeight))
      return places[key] = *inWeight;
  }
  BufferKind kind = BufferKind::optimizer;
  Type element = builder.getF32Type();
  switch (key.kind) {
  case StateKind::weight:
    kind = BufferKind::weights;
    element = type.getElementType();
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
  case StateKind::metric: // of f32, or of i32 where it is counted
    kind = BufferKind::results;
    element = type.getElementType();
    break;
  case StateKind::master:
    break;
  case StateKind::optimizer:
    element = type.getElementType();
    break;
  }
  bool mayGrow =
      key.kind == StateKind::weight || key.kind == StateKind::gradient;
  return places[key] =
             buffers.persistent(plan::stateName(key.name, key.role()), kind,
                                type.getShape(), element, mayGrow);
}

Place States::input(InputKind kind) {
  auto [known, isNew] = inputs.try_emplace(kind);
  bool isNumber = kind == InputKind::learning_rate;
  if (isNew)
    known->second = buffers.persistent(
        stringifyInputKind(kind), BufferKind::input,
        isNumber ? ArrayRef<int64_t>() : ArrayRef<int64_t>(3),
        isNumber ? Type(builder.getF32Type()) : builder.getI32Type());
  return known->second;
}

Place States::biasCorrection(double base) {
  auto [known, isNew] = corrections.try_emplace(base);
  SmallString<16> digits;
  APFloat(base).toString(digits);
  if (isNew)
    known->second =
        buffers.persistent("bias correction of " + digits, BufferKind::input,
                           {}, builder.getF32Type());
  return known->second;
}

Place States::stepInput(StepInputOp op) {
  StepInput kind = op.getKind();
  if (kind == StepInput::learning_rate)
    return input(InputKind::learning_rate);
  if (kind == StepInput::bias_correction)
    return biasCorrection(op.getBase()->convertToDouble());
  // Three numbers side by side. Those of a microbatch are gone when the update
  // runs, which has some of its own.
  bool ofUpdate = roleOf(op) == StepFunction::update;
  Place whole = input(ofUpdate ? InputKind::update_random : InputKind::random);
  int64_t at =
      static_cast<int64_t>(kind) - static_cast<int64_t>(StepInput::seed);
  return Place{whole.buffer, at, {}, {}, whole.element};
}

} // namespace meshwork::schedule
