// What the runtime is told of a program: its parameters with their states, what
// it writes before a step and what it reads after one.
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/StepFunctions.h"
#include "passes/schedule/Lowering.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {
namespace {
/// What the optimizer keeps for each parameter, in the order of the program.
using Slots = llvm::StringMap<SmallVector<StateOp>>;

FailureOr<Slots> slotsOf(ModuleOp module) {
  Slots slots;
  WalkResult walked = module.walk([&](StateOp op) {
    if (op.getKind() != StateKind::optimizer)
      return WalkResult::advance();
    SmallVector<StateOp> &known = slots[op.getName()];
    auto same = llvm::find_if(
        known, [&](StateOp one) { return one.getSlot() == op.getSlot(); });
    if (same == known.end()) {
      known.push_back(op);
    } else if (same->getInitialAttr() != op.getInitialAttr()) {
      InFlightDiagnostic diag =
          op.emitOpError("begins with another value than the same slot does");
      diag.attachNote(same->getLoc()) << "here";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  return slots;
}
} // namespace

static void describeParameter(transformer::ParameterOp op,
                              ArrayRef<StateOp> slots, Lowering &to) {
  ProgramBuilder &builder = to.builder;
  Placement &placement = to.placement;
  SmallVector<Attribute> states;
  SmallVector<Value> views;
  auto add = [&](StringRef name, StateRole role, FloatAttr initial,
                 mesh::ShardingAttr sharding, const Place &place) {
    states.push_back(StateAttr::get(builder.getContext(),
                                    builder.getStringAttr(name), role, initial,
                                    sharding));
    views.push_back(builder.view(builder.program.getLoc(), place));
  };
  auto addKind = [&](StateKind kind, StateRole role) {
    StateKey key{kind, op.getName()};
    States::Stored stored = placement.states.stored(key);
    add(key.role(), role, {}, stored.sharding,
        placement.states.of(key, stored.type ? stored.type : op.getType()));
  };
  addKind(StateKind::weight, StateRole::weight);
  if (!op.getUntrained())
    addKind(StateKind::master, StateRole::master);
  for (StateOp slot : slots)
    add(*slot.getSlot(), StateRole::optimizer, slot.getInitialAttr(),
        placement.states.stored(slot.getKey()).sharding,
        placement.states.of(slot.getKey(), slot.getType()));
  // What @update has reduced lies as the optimizer's own state does.
  if (const Place *reduced = to.gradients.find(op.getName()))
    add("gradient", StateRole::gradient, {},
        placement.states.stored({StateKind::master, op.getName()}).sharding,
        *reduced);
  else if (!op.getUntrained())
    addKind(StateKind::gradient, StateRole::gradient);
  auto described = schedule::ParameterOp::create(
      builder, op.getLoc(), op.getNameAttr(),
      builder.getDenseI64ArrayAttr(op.getShapeInFile()),
      builder.getDenseI64ArrayAttr(op.getWholeShape()), op.getInit(),
      builder.getArrayAttr(states), views, op.getFilesAttr(),
      op.getOtherFilesAttr());
  setLayer(described, layerOf(op));
}

/// How an argument of @microbatch is split beside its samples; null: it is not.
static mesh::DimShardingAttr splitOfSequence(BlockArgument argument) {
  constexpr size_t sequenceDim = 1;
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto split = function.getArgAttrOfType<mesh::ShardingAttr>(
      argument.getArgNumber(), mesh::MeshDialect::storedName);
  return split ? split.getDims()[sequenceDim] : mesh::DimShardingAttr();
}

static void describeInputs(func::FuncOp function, Lowering &to) {
  ProgramBuilder &builder = to.builder;
  Placement &placement = to.placement;
  auto input = [&](InputKind kind, const Place &place, FloatAttr base = {},
                   mesh::DimShardingAttr split = {}, int64_t size = 0,
                   int64_t hop = 0) {
    Location loc = builder.program.getLoc();
    InputOp::create(builder, loc, kind, builder.view(loc, place), split, size,
                    hop, base);
  };
  for (auto &[name, coordinate] : to.inputs.all())
    input(coordinate.kind, coordinate.place, {}, coordinate.split,
          coordinate.size, coordinate.hop);
  for (BlockArgument argument : function.getArguments())
    if (!argument.use_empty()) // No stage reads what another one needs.
      input(*symbolizeInputKind(inputOf(argument)), *placement.of(argument), {},
            splitOfSequence(argument));
  input(InputKind::learning_rate,
        placement.states.input(InputKind::learning_rate));
  for (const auto &[base, place] : placement.states.biasCorrections())
    input(InputKind::bias_correction, place,
          builder.getF32FloatAttr(static_cast<float>(base)));
  input(InputKind::random, placement.states.input(InputKind::random));
  if (placement.states.hasInput(InputKind::update_random))
    input(InputKind::update_random,
          placement.states.input(InputKind::update_random));
}

LogicalResult describeState(func::FuncOp function, Lowering &to) {
  ProgramBuilder &builder = to.builder;
  auto module = function->getParentOfType<ModuleOp>();
  FailureOr<Slots> slots = slotsOf(module);
  if (failed(slots))
    return failure();
  builder.setInsertionPoint(builder.once);
  for (auto op : function.getOps<transformer::ParameterOp>())
    describeParameter(op, slots->lookup(op.getName()), to);
  describeInputs(function, to);
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  auto result = [&](ResultKind kind, StateKind state, RankedTensorType type,
                    StringRef name = "") {
    Location loc = builder.program.getLoc();
    Place place = to.placement.states.of({state, name}, type);
    ResultOp::create(builder, loc, kind,
                     name.empty() ? StringAttr() : builder.getStringAttr(name),
                     builder.view(loc, place));
  };
  result(ResultKind::loss, StateKind::loss, scalar);
  result(ResultKind::grad_norm, StateKind::grad_norm, scalar);
  llvm::MapVector<StringRef, RankedTensorType> metrics;
  // What a microbatch adds to is not what a step tells.
  auto isUpdate = [](func::FuncOp function) {
    return roleOf(function) == StepFunction::update;
  };
  for (auto update :
       llvm::make_filter_range(module.getOps<func::FuncOp>(), isUpdate))
    for (auto assign : update.getOps<AssignOp>())
      if (assign.getKind() == StateKind::saturated)
        result(ResultKind::saturated, StateKind::saturated, scalar);
      else if (assign.getKind() == StateKind::metric)
        metrics.insert({assign.getName(), tensorType(assign.getValue())});
  for (const auto &[name, type] : metrics)
    result(ResultKind::metric, StateKind::metric, type, name);
  return success();
}

} // namespace meshwork::schedule
