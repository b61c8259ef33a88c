#include "passes/transform/GradientError.h"
#include "dialects/transformer/StepFunctions.h"

using namespace mlir;
namespace meshwork::transform {
using namespace transformer;

static constexpr StateKey squared{StateKind::metric, "gradient_error_squared"},
    told{StateKind::metric, "gradient_error"};

/// The first of these that has to do with `kind`; null: none.
template <typename Op> static Op firstOf(func::FuncOp update, StateKind kind) {
  for (auto op : update.getOps<Op>())
    if (op.getKind() == kind)
      return op;
  return {};
}

bool GradientError::isToldIn(ModuleOp module) {
  func::FuncOp update = functionOf(module, StepFunction::update);
  if (update && firstOf<StateOp>(update, StateKind::loss) &&
      firstOf<AssignOp>(update, StateKind::grad_norm))
    return true;
  module.emitError() << "expected a function @update that reads the loss and "
                        "assigns grad_norm; run -autodiff-build-update first";
  return false;
}

GradientError::GradientError(ModuleOp module, StringRef stages)
    : module(module), mesh(mesh::meshOf(module)), stages(stages) {
  for (auto state : functionOf(module, StepFunction::update).getOps<StateOp>())
    if (state.getKind() == StateKind::gradient)
      gradients[state.getNameAttr()] = state;
}

/// Of all ranks. Those along the stages have parameters of their own, which
/// cutting adds up.
ArrayAttr GradientError::axes() const {
  SmallVector<Attribute> all;
  for (StringAttr axis : mesh.getNames())
    if (axis.getValue() != stages && mesh.sizeOf(axis) > 1)
      all.push_back(axis);
  return ArrayAttr::get(mesh.getContext(), all);
}

/// Ranks that round the same numbers: along axes that neither split the
/// gradient nor are summed over, here or behind this sum.
double GradientError::copiesOf(mesh::ReduceScatterOp op, StringAttr parameter) {
  auto stored = gradients.at(parameter)->getAttrOfType<mesh::ShardingAttr>(
      mesh::MeshDialect::storedName);
  llvm::SmallDenseSet<Attribute> others(op.getAxes().begin(),
                                        op.getAxes().end());
  others.insert(stored.getPartial().begin(), stored.getPartial().end());
  for (mesh::DimShardingAttr dim : stored.getDims())
    others.insert(dim.getAxes().begin(), dim.getAxes().end());
  int64_t copies = 1;
  for (auto axis : axes().getAsRange<StringAttr>())
    if (!others.contains(axis))
      copies *= mesh.sizeOf(axis);
  return static_cast<double>(copies);
}

void GradientError::add(OpBuilder &builder, mesh::ReduceScatterOp op,
                        StringAttr parameter, ArrayRef<Value> squares) {
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  auto part = static_cast<float>(1 / copiesOf(op, parameter));
  Value sum = buildMap(
      b, b.getLoc(), RankedTensorType::get({}, b.getF32Type()), squares,
      [&](ImplicitLocOpBuilder &i, ValueRange x) -> Value {
        Value all = x[0];
        for (Value one : x.drop_front())
          all = arith::AddFOp::create(i, all, one);
        return arith::MulFOp::create(
            i, all, arith::ConstantOp::create(i, i.getF32FloatAttr(part)));
      });
  if (roleOf(op) == StepFunction::update) {
    ofUpdate.push_back(sum);
    return;
  }
  isSummed = true;
  AccumulateOp::create(b, squared, sum);
}

/// What microbatches have added up, read where the loss is.
StateOp GradientError::summed() {
  func::FuncOp update = functionOf(module, StepFunction::update);
  auto loss = firstOf<StateOp>(update, StateKind::loss);
  ImplicitLocOpBuilder b(loss.getLoc(), loss);
  b.setInsertionPointAfter(loss);
  auto state =
      StateOp::create(b, RankedTensorType::get({}, b.getF32Type()), squared);
  auto partial = llvm::to_vector(axes().getAsRange<StringAttr>());
  auto sharding = mesh::ShardingAttr::get(b.getContext(), {}, {}, partial,
                                          mesh::Reduction::sum);
  state->setAttr(mesh::MeshDialect::storedName, sharding);
  state->setAttr(mesh::MeshDialect::shardingsName, b.getArrayAttr({sharding}));
  return state;
}

Value GradientError::allReduce(ImplicitLocOpBuilder &b, Value value) {
  auto text = [&](StringRef t) { return b.getStringAttr(t); };
  auto cause = mesh::CauseAttr::get(
      b.getContext(), text(told.name), mesh::CauseAttr::noLayer, text(""),
      mesh::CauseAttr::noLayer, text("sums over all that rounds gradients"),
      {text("zero.gradient_error")});
  return mesh::AllReduceOp::create(b, value.getType(), value,
                                   mesh::Reduction::sum, axes(), cause);
}

/// Before the norm is told, behind all sums of gradients, and before anything
/// is updated.
void GradientError::tell() {
  func::FuncOp update = functionOf(module, StepFunction::update);
  auto norm = firstOf<AssignOp>(update, StateKind::grad_norm);
  ImplicitLocOpBuilder b(norm.getLoc(), norm);
  auto scalar = RankedTensorType::get({}, b.getF32Type());
  SmallVector<Value> sums;
  if (isSummed)
    sums.push_back(allReduce(b, summed()));
  if (!ofUpdate.empty()) {
    // A stage may have none, and takes part.
    ofUpdate.push_back(
        buildMap(b, b.getLoc(), scalar, {},
                 [](ImplicitLocOpBuilder &i, ValueRange) -> Value {
                   return arith::ConstantOp::create(i, i.getF32FloatAttr(0));
                 }));
    sums.push_back(allReduce(b, buildSum(b, ofUpdate)));
  }
  Value root =
      buildMap(b, b.getLoc(), scalar, sums,
               [](ImplicitLocOpBuilder &i, ValueRange x) -> Value {
                 Value all = arith::ConstantOp::create(i, i.getF32FloatAttr(0));
                 for (Value one : x)
                   all = arith::AddFOp::create(i, all, one);
                 return math::SqrtOp::create(i, all);
               });
  AssignOp::create(b, told, root);
  b.setInsertionPointAfter(norm);
  awaits(b, norm, root);
}

/// What updates weights reads the norm, so that no schedule does before that is
/// known; then let it wait for `root` too. The norm keeps its bits: what is
/// added is 0, since no root is below.
void GradientError::awaits(ImplicitLocOpBuilder &b, AssignOp norm, Value root) {
  Value known = norm.getValue();
  auto both = buildMap(b, b.getLoc(), tensorType(known), {known, root},
                       [](ImplicitLocOpBuilder &i, ValueRange x) -> Value {
                         Value zero =
                             arith::ConstantOp::create(i, i.getF32FloatAttr(0));
                         return arith::AddFOp::create(
                             i, x[0], arith::MinNumFOp::create(i, x[1], zero));
                       });
  known.replaceUsesWithIf(both, [&](OpOperand &use) {
    Operation *user = use.getOwner();
    return user != norm && user != both.getDefiningOp();
  });
}

} // namespace meshwork::transform
