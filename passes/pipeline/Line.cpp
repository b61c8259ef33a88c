// The lists of a step in a line, and what goes from one to the next.
#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Facts.h"
#include "passes/pipeline/Cut.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::pipeline {

int64_t Line::listOf(Operation *op) const {
  std::optional<int64_t> layer = op ? layers.of(op) : std::nullopt;
  if (!layer)
    return -1;
  int64_t stage = placement.ofLayer[*layer];
  return layers.isInBackward(op) ? lists() - 1 - stage : stage;
}

std::optional<Line> Line::create(func::FuncOp microbatch,
                                 const LayersOfOps &layers,
                                 const Placement &placement,
                                 const Scatter &scatter) {
  Line line(microbatch, layers, placement, scatter);
  line.ops.resize(line.lists());
  line.handed.resize(line.lists());
  if (failed(line.readOps()))
    return std::nullopt;
  if (placement.splitsBackward)
    line.findWeightGradients();
  return line;
}

LogicalResult Line::readOps() {
  for (Operation &op : microbatch.getBody().front().without_terminator()) {
    int64_t list = listOf(&op);
    if (list < 0) {
      if (op.getNumResults() == 0)
        return op.emitOpError("depends on no layer, so no stage of a pipeline "
                              "has it");
      continue;
    }
    ops[list].push_back(&op);
    for (Value result : op.getResults())
      if (failed(handOn(result)))
        return failure();
  }
  return success();
}

/// A stage that is passed in the forward pass keeps the value; only what the
/// line has left behind comes back with the gradients.
LogicalResult Line::handOn(Value value) {
  int64_t made = listOf(value.getDefiningOp()), stage = stageAt(made),
          last = made, lowest = stage;
  for (Operation *user : value.getUsers()) {
    int64_t used = listOf(user), at = stageAt(used);
    bool isForward = made < placement.stages();
    if (used < made)
      return user->emitOpError("is of stage ")
             << at << " of the pipeline and reads what stage " << stage
             << " makes, which comes later; layers must be used in their order";
    if (isForward && at >= stage)
      last = std::max(last, at); // forward to that stage, and kept there
    else
      lowest = std::min(lowest, at);
  }
  for (int64_t list = made; list < last; ++list)
    handed[list].push_back(value);
  for (int64_t at = stage; at > lowest; --at)
    handed[lists() - 1 - at].push_back(value);
  return success();
}

static WeightGradient roleOf(Operation *op) {
  auto tensors = dyn_cast<TensorOpInterface>(op);
  return tensors ? tensors.getWeightGradient() : WeightGradient::none;
}

/// Products and gradients of embeddings that are only added up, with what moves
/// them: nothing waits for them but the end of the step.
void Line::findWeightGradients() {
  for (const std::vector<Operation *> &list : ops)
    for (Operation *op : llvm::reverse(list)) {
      bool isGradient =
          layers.isInBackward(op) && roleOf(op) != WeightGradient::none;
      if (isGradient && llvm::all_of(op->getUsers(), [&](Operation *user) {
            return ofWeights.contains(user);
          }))
        ofWeights.insert(op);
    }
  // What is added up as it is stays where it is made.
  for (const std::vector<Operation *> &list : ops)
    for (Operation *op : list)
      if (ofWeights.contains(op) && roleOf(op) != WeightGradient::makes &&
          !ofWeights.contains(op->getOperand(0).getDefiningOp()))
        ofWeights.erase(op);
}

/// Builds one rank's lists.
class Builder {
public:
  Builder(const Line &line, int64_t rank, func::FuncOp into)
      : line(line), rank(rank), builder(into.getContext()) {
    Block *block = into.addEntryBlock();
    builder.setInsertionPointToEnd(block);
    mapping.map(const_cast<func::FuncOp &>(line.microbatch).getArguments(),
                block->getArguments());
  }

  void run() {
    for (int64_t list = 0; list < line.lists(); ++list)
      if (line.rankAt(list) == rank)
        addList(list);
    func::ReturnOp::create(builder, builder.getUnknownLoc());
  }

private:
  bool crosses(int64_t list) const {
    return list >= 0 && list + 1 < line.lists() &&
           line.rankAt(list) != line.rankAt(list + 1) &&
           !line.handed[list].empty();
  }
  mesh::Direction directionOf(int64_t list) const {
    return list < line.placement.stages() ? mesh::Direction::forward
                                          : mesh::Direction::backward;
  }
  void begin(StageList kind, int64_t list) {
    StageListOp::create(builder, builder.getUnknownLoc(), kind,
                        line.stageAt(list));
  }

  void addList(int64_t list) {
    bool isForward = list < line.placement.stages();
    begin(isForward                       ? StageList::forward
          : line.placement.splitsBackward ? StageList::input_grad
                                          : StageList::backward,
          list);
    if (crosses(list - 1))
      receive(list - 1);
    addOps(list, /*ofWeights=*/false);
    if (crosses(list))
      send(list);
    if (isForward || !line.placement.splitsBackward)
      return;
    begin(StageList::weight_grad, list);
    addOps(list, /*ofWeights=*/true);
  }

  void addOps(int64_t list, bool ofWeights) {
    for (Operation *op : line.ops[list])
      if (line.ofWeights.contains(op) == ofWeights)
        setStage(copy(op), line.stageAt(list));
  }

  void receive(int64_t from) {
    ArrayRef<Value> values = line.handed[from];
    SmallVector<std::optional<Parts>> parts;
    SmallVector<Type> types;
    for (Value value : values) {
      parts.push_back(line.scatter.of(value));
      types.push_back(parts.back() ? parts.back()->type : value.getType());
    }
    auto op = mesh::ReceiveOp::create(
        builder, values.front().getLoc(), types, directionOf(from),
        line.placement.axis.getValue(), line.rankAt(from));
    setStage(op, line.stageAt(from + 1));
    for (auto [value, part, result] :
         llvm::zip_equal(values, parts, op.getResults()))
      mapping.map(value, part ? gathered(value, *part, result, from + 1)
                              : Value(result));
  }

  /// What a boundary adds to a list is of its pass, and of the layer there.
  template <typename Op> Value atBoundary(Op op, int64_t list) {
    bool isForward = directionOf(list) == mesh::Direction::forward;
    setPass(op, isForward ? PassKind::forward : PassKind::backward);
    setStage(op, line.stageAt(list));
    return op.getResult();
  }

  mesh::CauseAttr causeOf(const Parts &parts, int64_t list) {
    auto text = [&](const Twine &words) {
      return builder.getStringAttr(words);
    };
    bool isForward = directionOf(list) == mesh::Direction::forward;
    constexpr int64_t noLayer = mesh::CauseAttr::noLayer;
    return mesh::CauseAttr::get(
        builder.getContext(),
        text(isForward ? "activations between stages"
                       : "gradients between stages"),
        noLayer, text(""), noLayer,
        text("cross in parts, one from each rank that has them whole "
             "(shard.layers)"),
        {text("shard.layers")});
  }

  Value gathered(Value whole, const Parts &parts, Value part, int64_t list) {
    return atBoundary(
        mesh::AllGatherOp::create(builder, whole.getLoc(), whole.getType(),
                                  part, builder.getI64IntegerAttr(parts.dim),
                                  parts.axes, causeOf(parts, list)),
        list);
  }

  /// This rank's part of a value that crosses in parts, else the value.
  Value partOf(Value whole, int64_t list) {
    Value own = mapping.lookup(whole);
    std::optional<Parts> parts = line.scatter.of(whole);
    if (!parts)
      return own;
    return atBoundary(
        mesh::SliceOp::create(builder, whole.getLoc(), parts->type, own,
                              builder.getI64IntegerAttr(parts->dim),
                              parts->axes, causeOf(*parts, list)),
        list);
  }

  void send(int64_t list) {
    SmallVector<Value> values;
    for (Value value : line.handed[list])
      values.push_back(partOf(value, list));
    auto op = mesh::SendOp::create(
        builder, values.front().getLoc(), values, directionOf(list),
        line.placement.axis.getValue(), line.rankAt(list + 1));
    setStage(op, line.stageAt(list));
  }

  /// With what it reads and no stage has: that is made here.
  Operation *copy(Operation *op) {
    for (Value operand : op->getOperands())
      if (!mapping.contains(operand))
        copy(operand.getDefiningOp());
    return builder.clone(*op, mapping);
  }

  const Line &line;
  int64_t rank;
  OpBuilder builder;
  IRMapping mapping;
};

func::FuncOp Line::build(ModuleOp module, int64_t rank) const {
  auto function = cast<func::FuncOp>(
      const_cast<func::FuncOp &>(microbatch)->cloneWithoutRegions());
  module.push_back(function);
  Builder(*this, rank, function).run();
  return function;
}

} // namespace meshwork::pipeline
