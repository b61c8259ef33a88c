// One rank's program: local types, and collectives in the place of reshards.
#include "dialects/mesh/Provenance.h"
#include "dialects/transformer/Facts.h"
#include "lib/Sharding/Reshard.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/partition/ExpandRing.h"
#include "passes/partition/Mask.h"
#include "passes/partition/Passes.h"
#include "passes/sharding/Shardings.h"
#include "passes/sharding/Ulysses.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace meshwork::partition {
#define GEN_PASS_DEF_LOCALIZEPASS
#include "passes/partition/Passes.h.inc"
namespace {
using namespace transformer;
using namespace sharding;

class Localization {
public:
  Localization(func::FuncOp function, mesh::MeshAttr attr, Planner &planner)
      : function(function), attr(attr), mesh(meshFrom(attr)), planner(planner),
        builder(function.getContext()), masks(attr, mesh) {}

  LogicalResult run() {
    SmallVector<Operation *> ops;
    for (Operation &op : function.getBody().front())
      ops.push_back(&op);
    // Whole shapes are looked at before any type changes.
    for (Operation *op : ops)
      if (failed(countFromOwn(op)))
        return failure();
    for (BlockArgument argument : function.getArguments())
      shrink(argument);
    bool fine = true;
    for (Operation *op : ops)
      fine &= succeeded(checkPartial(op));
    if (!fine)
      return failure();
    for (Operation *op : ops)
      fine &= succeeded(localize(op));
    for (Operation *op : ops)
      if (isa<mesh::ReshardOp>(op) || replaced.contains(op))
        op->erase();
      else if (!isa<transformer::ParameterOp, StateOp>(op))
        op->removeAttr(mesh::MeshDialect::shardingsName);
    for (BlockArgument argument : function.getArguments())
      keepSplit(argument);
    function.setFunctionType(FunctionType::get(
        function.getContext(), function.getBody().getArgumentTypes(), {}));
    return success(fine);
  }

private:
  Sharding shardingOf(Value value) const {
    mesh::ShardingAttr sharding = mesh::shardingOf(value);
    return sharding ? fromAttr(attr, sharding)
                    : replicated(tensorType(value).getRank());
  }

  void shrink(Value value) {
    if (isa<RankedTensorType>(value.getType()))
      value.setType(localType(mesh, tensorType(value), shardingOf(value)));
  }

  /// Samples are given by number; of what else splits an argument the runtime
  /// must know.
  void keepSplit(BlockArgument argument) {
    Sharding sharding = shardingOf(argument);
    unsigned number = argument.getArgNumber();
    function.removeArgAttr(number, mesh::MeshDialect::shardingName);
    if (llvm::any_of(llvm::drop_begin(sharding.dims),
                     [](const Axes &axes) { return !axes.empty(); }))
      function.setArgAttr(number, storedName, toAttr(attr, sharding));
  }

  /// A partial sum may be added up, go through what is linear, or wait in a
  /// state that knows; anything else would make a wrong value of it.
  LogicalResult checkPartial(Operation *op) {
    auto partialOf = [&](Value value) {
      return isa<RankedTensorType>(value.getType()) ? shardingOf(value).partial
                                                    : Axes();
    };
    if (auto reshard = dyn_cast<mesh::ReshardOp>(op)) {
      Sharding from = fromAttr(attr, reshard.getSource()),
               actual = shardingOf(reshard.getInput());
      if (from == actual)
        return success();
      return reshard.emitOpError()
             << "starts from " << textOf(mesh, from) << ", but its input is "
             << textOf(mesh, actual);
    }
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      Axes partial = partialOf(operand);
      auto isSame = [&](Value value) { return partialOf(value) == partial; };
      auto includes = [&](Value value) {
        Axes all = partialOf(value);
        return llvm::all_of(partial, [&](AxisId axis) {
          return llvm::is_contained(all, axis);
        });
      };
      auto stored = op->getAttrOfType<mesh::ShardingAttr>(storedName);
      bool waits = isa<AccumulateOp>(op) && stored &&
                   fromAttr(attr, stored).partial == partial;
      bool passes = isLinear(op) && llvm::all_of(op->getOperands(), isSame) &&
                    llvm::all_of(op->getResults(), includes);
      if (!partial.empty() && !waits && !passes)
        return op->emitOpError() << "operand #" << i << " is "
                                 << textOf(mesh, shardingOf(operand))
                                 << ", a sum that is not complete; expected a "
                                    "mesh.reshard before it";
    }
    return success();
  }

  LogicalResult localize(Operation *op) {
    if (auto reshard = dyn_cast<mesh::ReshardOp>(op))
      return collectives(reshard);
    if (isa<transformer::ParameterOp, StateOp>(op)) {
      auto whole =
          builder.getDenseI64ArrayAttr(tensorType(op->getResult(0)).getShape());
      op->setAttr(isa<StateOp>(op) ? "mesh.global_shape" : "global_shape",
                  whole);
    }
    masks.guard(op);
    masks.derive(op, llvm::map_to_vector(op->getResults(), [&](Value result) {
                   return shardingOf(result);
                 }));
    for (Value result : op->getResults())
      shrink(result);
    if (auto ring = rings.find(op); ring != rings.end())
      expand(op, ring->second);
    return success();
  }

  /// What attention in a ring is over.
  struct Sequence {
    Axes axes; // of the ranks that share it
    int64_t size;
  };

  /// Attention in hops.
  void expand(Operation *op, const Sequence &sequence) {
    SmallVector<Value> results =
        expandRing(op, attr, mesh, sequence.axes, sequence.size);
    for (auto [result, found] : llvm::zip_equal(op->getResults(), results)) {
      masks.takeOver(result, found);
      result.replaceAllUsesWith(found);
    }
    replaced.insert(op);
  }

  LogicalResult collectives(mesh::ReshardOp op) {
    auto whole = tensorType(op.getResult());
    std::string error;
    const Plan *plan = planner.plan(std::vector<int64_t>(whole.getShape()),
                                    whole.getElementTypeBitWidth() / 8,
                                    fromAttr(attr, op.getSource()),
                                    fromAttr(attr, op.getTarget()), error);
    if (!plan)
      return op.emitOpError() << "cannot be done: " << error;
    noteSteps(op, *plan);
    builder.setInsertionPoint(op);
    Value value = op.getInput();
    for (const Step &step : plan->steps) {
      Value input = value;
      value = ofStep(op, input, step, localType(mesh, whole, step.after));
      masks.deriveStep(input, value, step, whole);
    }
    op.getResult().replaceAllUsesWith(value);
    return success();
  }

  /// One step, with the change of order that leaving or entering a layout
  /// takes beside the collective.
  Value ofStep(mesh::ReshardOp op, Value input, const Step &step,
               RankedTensorType type) {
    Operation *before = op->getPrevNode();
    int64_t ranks = mesh.numRanks(step.axes);
    Value value = input;
    if (DimLayout layout = step.layoutEntered(); layout != DimLayout::block) {
      Parts parts{step.toDim >= 0 ? step.toDim : step.dim, ranks, layout};
      auto whole = tensorType(value);
      value =
          reordered(op, value, parts,
                    ofSize(whole, parts.dim, parts.storedSize(whole)), true);
    }
    if (DimLayout layout = step.layoutLeft(); layout != DimLayout::block) {
      Parts parts{step.dim, ranks, layout};
      auto stored = ofSize(type, parts.dim, parts.storedSize(type));
      value = reordered(op, collective(op, value, step, stored), parts, type,
                        false);
    } else {
      value = collective(op, value, step, type);
    }
    for (Operation *made = before ? before->getNextNode()
                                  : &op->getBlock()->front();
         made != op; made = made->getNextNode())
      inheritFacts(op, made);
    return value;
  }

  /// A dim over `count` ranks, whose parts stand one behind the other.
  struct Parts {
    int64_t dim, count;
    DimLayout order;
    int64_t storedSize(RankedTensorType whole) const {
      return count * ranksOf(whole.getDimSize(dim), 0).first;
    }
    /// The length of a part, and what part `index` holds.
    std::pair<int64_t, std::vector<layout::Range>>
    ranksOf(int64_t size, int64_t index) const {
      layout::Cut cut{count, index, order};
      return {layout::storedSize(size, {&cut, 1}),
              layout::ranges(size, {&cut, 1})};
    }
  };

  static RankedTensorType ofSize(RankedTensorType type, int64_t dim,
                                 int64_t size) {
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = size;
    return RankedTensorType::get(shape, type.getElementType(),
                                 type.getEncoding());
  }

  /// Brings a dim from its own order into that of the ranks' parts, or back.
  /// What is behind a part's elements is zero.
  Value reordered(mesh::ReshardOp op, Value input, const Parts &parts,
                  RankedTensorType result, bool toParts) {
    auto from = tensorType(input);
    StringAttr name = dimsOf(from).getNames()[parts.dim];
    int64_t size = (toParts ? from : result).getDimSize(parts.dim);
    struct Piece {
      int64_t to, from, count;
    };
    std::vector<Piece> order;
    for (int64_t i = 0; i < parts.count; ++i) {
      auto [length, held] = parts.ranksOf(size, i);
      for (const layout::Range &range : held) {
        int64_t stored = i * length + range.offset;
        if (range.count != 0)
          order.push_back({toParts ? stored : range.begin,
                           toParts ? range.begin : stored, range.count});
      }
    }
    llvm::sort(order,
               [](const Piece &a, const Piece &b) { return a.to < b.to; });
    SmallVector<Value> pieces;
    SmallVector<int64_t> places;
    for (const Piece &piece : order) {
      pieces.push_back(transformer::SliceOp::create(
          builder, op.getLoc(), ofSize(from, parts.dim, piece.count), input,
          name, builder.getI64IntegerAttr(piece.from)));
      places.push_back(piece.to);
    }
    return UnsliceOp::create(builder, op.getLoc(), result, pieces, name,
                             builder.getDenseI64ArrayAttr(places));
  }

  void noteSteps(mesh::ReshardOp op, const Plan &plan) {
    mesh::Provenance &notes = mesh::provenanceOf(op);
    auto known = notes.reshards.find(op);
    if (known == notes.reshards.end())
      return;
    auto [value, move] = known->second;
    for (const Step &step : plan.steps)
      notes.values[value].moves[move].steps.push_back(
          {step.text(mesh), step.bytesSent});
    notes.reshards.erase(known);
  }

  Value collective(mesh::ReshardOp op, Value input, const Step &step,
                   RankedTensorType type) {
    ArrayAttr axes = axesAttr(attr, step.axes);
    auto reduction = mesh::ReductionAttr::get(
        attr.getContext(), step.before.reduction == sharding::Reduction::max
                               ? mesh::Reduction::max
                               : mesh::Reduction::sum);
    auto number = [&](int64_t value) {
      return builder.getI64IntegerAttr(value);
    };
    Location loc = op.getLoc();
    mesh::CauseAttr cause = op.getCause();
    switch (step.kind) {
    case Step::Kind::allReduce:
      return mesh::AllReduceOp::create(builder, loc, type, input, reduction,
                                       axes, cause);
    case Step::Kind::reduceScatter:
      return mesh::ReduceScatterOp::create(builder, loc, type, input, reduction,
                                           number(step.dim), axes, cause);
    case Step::Kind::allGather:
      return mesh::AllGatherOp::create(builder, loc, type, input,
                                       number(step.dim), axes, cause);
    case Step::Kind::allToAll:
      return mesh::AllToAllOp::create(builder, loc, type, input,
                                      number(step.dim), number(step.toDim),
                                      axes, cause);
    case Step::Kind::slice:
      return mesh::SliceOp::create(builder, loc, type, input, number(step.dim),
                                   axes, cause);
    case Step::Kind::permute:
      return mesh::PermuteOp::create(
          builder, loc, type, input,
          builder.getDenseI64ArrayAttr(sourcesOf(step)), axes, cause);
    }
    llvm_unreachable("all kinds are handled");
  }

  /// By index in the group, seen from the group of rank 0: all are alike.
  SmallVector<int64_t> sourcesOf(const Step &step) const {
    SmallVector<int64_t> sources;
    for (int64_t i = 0, n = mesh.numRanks(step.axes); i < n; ++i)
      sources.push_back(
          mesh.index(permuteSource(mesh, step, mesh.withIndex(0, step.axes, i)),
                     step.axes));
    return sources;
  }

  //===-- Positions that ops count ------------------------------------------//

  LogicalResult countFromOwn(Operation *op) {
    return llvm::TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](EmbeddingOp op) { return setFirstRow(op, op.getTable()); })
        .Case(
            [&](EmbeddingGradOp op) { return setFirstRow(op, op.getResult()); })
        .Case([&](HeadLossGradOp op) { return splitHead(op); })
        .Case([&](RotaryTableOp op) { return setPositions(op); })
        .Case([&](transformer::AttentionOp op) { return countPairs(op); })
        .Case([&](transformer::AttentionGradOp op) {
          op.setDuplicated(!isSplitOverAll(op.getQ()));
          return countPairs(op);
        })
        .Case([&](MapOp op) { return countDraws(op); })
        .Default(success());
  }

  /// Where this rank's block of `value`'s dim begins, as a scalar tensor.
  Value offsetOf(Operation *at, Value value, int64_t dim) {
    Axes axes = shardingOf(value).dims[dim];
    builder.setInsertionPoint(at);
    auto scalar = RankedTensorType::get({}, builder.getI32Type());
    return mesh::CoordinateOp::create(builder, at->getLoc(), scalar,
                                      axesAttr(attr, axes),
                                      tensorType(value).getDimSize(dim));
  }

  template <typename Op> LogicalResult setFirstRow(Op op, Value table) {
    if (!shardingOf(table).dims[0].empty())
      op.getFirstRowMutable().assign(offsetOf(op, table, 0));
    return success();
  }

  /// Of a rank's own rows.
  LogicalResult setPositions(RotaryTableOp op) {
    auto whole = tensorType(op.getCosine());
    Axes axes = shardingOf(op.getCosine()).dims[0];
    if (!axes.empty())
      op.getPositionsMutable().assign(masks.positions(
          op, whole.getDimSize(0), axes, dimsOf(whole).getNames()[0]));
    return success();
  }

  LogicalResult splitHead(HeadLossGradOp op) {
    countTokens(op);
    Axes axes = shardingOf(op.getWeight()).dims[0];
    if (axes.empty())
      return success();
    int64_t rows = tensorType(op.getWeight()).getDimSize(0);
    op.setVocabulary(rows);
    op.setVocabAxesAttr(axesAttr(attr, axes));
    if (masks.isUneven(rows, axes))
      op.getRowsMutable().assign(masks.extent(op, rows, axes));
    return setFirstRow(op, op.getWeight());
  }

  /// One for each token that counts, zero for padding of a split dim and, where
  /// they are told so, for tokens without a target.
  void countTokens(HeadLossGradOp op) {
    auto whole = tensorType(op.getTargets());
    Sharding sharding = shardingOf(op.getTargets());
    SmallVector<Masks::Own> own;
    for (auto [i, name] : llvm::enumerate(dimsOf(whole).getNames()))
      if (masks.isUneven(whole.getDimSize(i), sharding.dims[i]))
        own.push_back(
            masks.own(op, whole.getDimSize(i), sharding.dims[i], name));
    if (own.empty() && !op.getCounted())
      return;
    auto ends = llvm::map_to_vector(
        own, [](const Masks::Own &one) { return one.operand; });
    if (op.getCounted())
      ends.push_back(op.getTargets());
    builder.setInsertionPoint(op);
    Type type =
        localType(mesh, withElement(whole, builder.getF32Type()), sharding);
    Value valid = buildMap(
        builder, op.getLoc(), type, ends,
        [&](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
          auto number = [&](float value) {
            return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
          };
          Value result = number(1), zero = number(0);
          for (auto [one, end] : llvm::zip(own, x))
            result = arith::SelectOp::create(b, one.test(b, end), result, zero);
          if (!op.getCounted())
            return result;
          Value hasTarget = arith::CmpIOp::create(
              b, arith::CmpIPredicate::sge, x.back(),
              arith::ConstantOp::create(b, b.getI32IntegerAttr(0)));
          return arith::SelectOp::create(b, hasTarget, result, zero);
        });
    op.getValidMutable().assign(valid);
  }

  /// No two ranks have the same part of `value`.
  bool isSplitOverAll(Value value) const {
    int64_t parts = 1;
    for (const Axes &axes : shardingOf(value).dims)
      parts *= mesh.numRanks(axes);
    return parts == mesh.numRanks();
  }

  /// Which queries and heads of the whole a rank has.
  template <typename Op> LogicalResult countPairs(Op op) {
    constexpr int64_t rowsDim = 1, headsDim = 2;
    auto whole = tensorType(op.getQ());
    if (Axes axes = shardingOf(op.getQ()).dims[rowsDim]; !axes.empty()) {
      if (sharingOf(op) == Sharing::ring)
        rings[op] = {axes, whole.getDimSize(rowsDim)};
      op.getPositionsMutable().assign(
          masks.positions(op, whole.getDimSize(rowsDim), axes,
                          dimsOf(whole).getNames()[rowsDim]));
    }
    if (op.getRandom().empty() || shardingOf(op.getQ()).dims[headsDim].empty())
      return success();
    op.setTotalHeads(whole.getDimSize(headsDim));
    op.getRandomMutable().append(offsetOf(op, op.getQ(), headsDim));
    return success();
  }

  /// What draws counts positions in the whole tensor; along `batch` its first
  /// sample does that already.
  LogicalResult countDraws(MapOp map) {
    SmallVector<DrawOpInterface> draws;
    map.getBody().walk([&](DrawOpInterface op) { draws.push_back(op); });
    if (draws.empty())
      return success();
    Value space = map.getResult(0);
    SmallVector<Attribute> dims;
    SmallVector<Value> inner;
    for (auto [i, name] : llvm::enumerate(dimsOf(space).getNames())) {
      if (name == "batch" || shardingOf(space).dims[i].empty())
        continue;
      dims.push_back(name);
      inner.push_back(offsetOfElement(map, space, i));
    }
    if (dims.empty())
      return success();
    for (DrawOpInterface op : draws) {
      op.getOffsetsMutable().assign(inner);
      op.setDimsAttr(builder.getArrayAttr(dims));
      op.setSpaceAttr(
          builder.getDenseI64ArrayAttr(tensorType(space).getShape()));
    }
    return success();
  }

  /// How much further along a dim of the whole than of the part an element of
  /// the map is: the part's beginning, or its own.
  Value offsetOfElement(MapOp map, Value space, int64_t dim) {
    const Axes axes = shardingOf(space).dims[dim];
    StringAttr name = dimsOf(space).getNames()[dim];
    bool isBlock = onlyBlocks(axes);
    map.getInputsMutable().append(
        isBlock ? offsetOf(map, space, dim)
                : masks.positions(map, tensorType(space).getDimSize(dim), axes,
                                  name));
    Value argument =
        map.getBody().addArgument(builder.getI32Type(), map.getLoc());
    if (isBlock)
      return argument;
    auto inBody = ImplicitLocOpBuilder::atBlockBegin(map.getLoc(),
                                                     &map.getBody().front());
    return arith::SubIOp::create(
        inBody, argument, IndexOp::create(inBody, builder.getI32Type(), name));
  }

  func::FuncOp function;
  mesh::MeshAttr attr;
  Mesh mesh;
  Planner &planner;
  OpBuilder builder;
  Masks masks;
  llvm::DenseMap<Operation *, Sequence> rings;
  llvm::DenseSet<Operation *> replaced;
};

struct LocalizePass : impl::LocalizePassBase<LocalizePass> {
  void runOnOperation() override {
    mesh::MeshAttr attr = mesh::meshOf(getOperation());
    if (!attr) {
      getOperation().emitError()
          << "expected the attribute mesh.mesh; run -sharding-annotate first";
      return signalPassFailure();
    }
    Planner planner(meshFrom(attr));
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(Localization(function, attr, planner).run()))
        return signalPassFailure();
  }
};
} // namespace
} // namespace meshwork::partition
