// Gives operands the sharding that their user needs. Visits each op once, in
// the order of the program. Which collectives a reshard becomes is decided
// later (Localize.cpp).
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/StepFunctions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/analysis/SpecKey.h"
#include "passes/partition/Passes.h"
#include "passes/partition/Reasons.h"
#include "passes/sharding/Ulysses.h"
#include "llvm/ADT/ScopeExit.h"
#include <deque>

using namespace mlir;
namespace meshwork::partition {
#define GEN_PASS_DEF_INSERTRESHARDSPASS
#include "passes/partition/Passes.h.inc"
namespace {
using namespace transformer;
using namespace sharding;

/// A state between instructions: the axes over which it is partial, how its
/// parts become one, and why.
struct StatePartial {
  Axes axes;
  sharding::Reduction reduction;
  std::vector<FactorAxis> sums;
};
using StatePartials = std::map<StateKey, StatePartial>;

class Insertion {
public:
  Insertion(func::FuncOp function, mesh::MeshAttr attr, StatePartials &partials,
            ArrayRef<std::string> once)
      : function(function), attr(attr), mesh(meshFrom(attr)),
        partials(partials), once(once), builder(function.getContext()),
        reasons(mesh, mesh::provenanceOf(function), shardings) {}

  LogicalResult run() {
    nameAll(function);
    for (auto op : function.getOps<AccumulateOp>())
      accumulated.insert(op.getValue());
    for (BlockArgument argument : function.getArguments())
      if (failed(begin(argument)))
        return failure();
    for (Operation &op : llvm::make_early_inc_range(function.getBody().front()))
      if (failed(visit(&op)))
        return failure();
    accumulate();
    for (auto &[value, sharding] : actual)
      mesh::setSharding(value, toAttr(attr, sharding));
    return success();
  }

private:
  /// A value begins where its op makes it.
  LogicalResult begin(Value value) {
    mesh::ShardingAttr sharding = mesh::shardingOf(value);
    if (!sharding)
      return emitError(value.getLoc())
             << "a value of " << value.getType()
             << " has no sharding; run -sharding-propagate first";
    home[value] = actual[value] = fromAttr(attr, sharding);
    return success();
  }

  LogicalResult visit(Operation *op) {
    for (Value result : op->getResults())
      if (failed(begin(result)))
        return failure();
    StateUse use = stateUseOf(op);
    if (use != StateUse::none && !op->hasAttr(storedName))
      return op->emitOpError("has no ")
             << storedName << "; run -sharding-shard-states first";
    if (use == StateUse::reads) {
      readState(op);
      return success();
    }
    if (auto op_ = dyn_cast<AccumulateOp>(op))
      accumulations[op_.getKey()].push_back(op_);
    else if (auto assign = dyn_cast<AssignOp>(op))
      assign.getValueMutable().assign(
          inSharding(assign.getValue(), storedOf(op), op, [&] {
            return reasons.ofState(assign.getKey(), assign.getValue(),
                                   storedOf(op));
          }));
    else if (isa<FactorOpInterface>(op))
      return computeFactors(op);
    else if (op->getNumResults() != 0 && !isa<StepInputOp>(op))
      return op->emitOpError("has no factors; it cannot be split over ranks");
    return success();
  }

  Sharding storedOf(Operation *op) {
    return fromAttr(attr, op->getAttrOfType<mesh::ShardingAttr>(storedName));
  }

  void readState(Operation *op) {
    Sharding stored = storedOf(op);
    if (auto state = dyn_cast<StateOp>(op))
      if (auto known = partials.find(state.getKey()); known != partials.end()) {
        stored.partial = known->second.axes;
        stored.reduction = known->second.reduction;
        sums[state.getResult()] = known->second.sums;
      }
    op->setAttr(storedName, toAttr(attr, stored));
    actual[op->getResult(0)] = stored;
  }

  LogicalResult computeFactors(Operation *op) {
    FactorTable table(op);
    if (sumLater(op, table))
      return success();
    std::deque<std::vector<Axes>> lies;
    SmallVector<Proposal> proposed =
        isOfStep(op) ? asStored(table, lies) : proposals(table, lies);
    std::vector<Axes> decided =
        table.decide(mesh, proposed, /*aggressive=*/true);
    if (exchangesHeads(op) && !splitHeads(op, table, mesh, proposed, decided))
      return op->emitOpError("has heads that the ranks of its sequence cannot "
                             "share equally");
    if (cast<TensorOpInterface>(op).drawsWords() &&
        function.getNumArguments() != 0)
      keepSamples(table, decided);
    table.dropScattered(mesh, decided);
    if (failed(checkExchanged(op, table, decided)))
      return failure();
    for (unsigned t = 0; t < table.numOperands(); ++t) {
      if (!isa<RankedTensorType>(table.tensor(t).getType()))
        continue;
      Sharding needed{
          table.dimsOf(mesh, t, decided), {}, sharding::Reduction::sum};
      op->setOperand(t, inSharding(table.tensor(t), needed, op, [&] {
                       return reasons.ofOperand(op, table, t, decided,
                                                proposed);
                     }));
    }
    for (OpResult result : op->getResults()) {
      actual[result] =
          table.resultSharding(mesh, result.getResultNumber(), decided);
      noteSums(result, table, decided, proposed);
    }
    return success();
  }

  /// Ranks exchange tokens only where they have different ones.
  LogicalResult checkExchanged(Operation *op, const FactorTable &table,
                               ArrayRef<Axes> decided) {
    for (auto [factor, axes] : llvm::zip_equal(table.factors(), decided))
      if (factor.kind == Factor::exchanged)
        for (AxisId axis : axes)
          if (!table.isExchanged(axis, decided))
            return emitError(analysis::ofSpec("experts.exchange", op->getLoc()))
                   << "ranks along '" << mesh.axes[axis].name << "' have other "
                   << factor.name
                   << ", but the same tokens here; write \"gathered\", or let "
                      "the axis split tokens too (shard.batch, "
                      "shard.residual_sequence)";
    return success();
  }

  /// Why a result is partial: which factors are combined into it, and what
  /// split them.
  void noteSums(OpResult result, const FactorTable &table,
                ArrayRef<Axes> decided, ArrayRef<Proposal> proposed) {
    for (auto [f, factor] : llvm::enumerate(table.factors()))
      if (factor.resultDims[result.getResultNumber()] == Factor::absent)
        for (AxisId axis : decided[f])
          if (!table.isExchanged(axis, decided))
            sums[result].push_back(
                factorAxis(notes(), mesh, table, f, axis, proposed));
  }

  /// Masks count samples from the rank's first one, so a rank draws them for
  /// the samples that it was given, and for all of these.
  void keepSamples(const FactorTable &table, std::vector<Axes> &decided) {
    const Axes &data = actual[function.getArgument(0)].dims[0];
    for (auto [factor, axes] : llvm::zip_equal(table.factors(), decided))
      if (factor.role == Factor::samples)
        axes = data;
      else
        llvm::erase_if(
            axes, [&](AxisId axis) { return llvm::is_contained(data, axis); });
  }

  /// `lies` keeps the dims: `home` moves when it grows.
  SmallVector<Proposal> proposals(const FactorTable &table,
                                  std::deque<std::vector<Axes>> &lies) {
    SmallVector<Proposal> list;
    for (unsigned t = 0; t < table.numTensors(); ++t) {
      Value value = table.tensor(t);
      bool isParameter =
          ofParameters.contains(value) || accumulated.contains(value);
      list.push_back({&lies.emplace_back(home[value].dims), isParameter});
    }
    return list;
  }

  /// What runs once a step computes on the part of a weight that the rank
  /// stores: what it makes is gathered for each use.
  SmallVector<Proposal> asStored(const FactorTable &table,
                                 std::deque<std::vector<Axes>> &lies) const {
    SmallVector<Proposal> list(table.numTensors(), Proposal{nullptr, false});
    for (unsigned t = 0; t < table.numOperands(); ++t)
      if (actual.lookup(table.tensor(t)).partial.empty())
        list[t].dims = &lies.emplace_back(actual.lookup(table.tensor(t)).dims);
    return list;
  }

  /// A linear op of values that are all partial over the same axes, and that
  /// only such ops use: its result, no larger, is partial too and reduced once.
  bool sumLater(Operation *op, const FactorTable &table) {
    if (!isLinear(op) || op->getNumOperands() == 0 || broadcasts(op))
      return false;
    Sharding first = actual[op->getOperand(0)];
    if (first.partial.empty() || first.reduction != sharding::Reduction::sum)
      return false;
    SmallVector<Proposal> list(table.numTensors(), Proposal{nullptr, false});
    std::deque<std::vector<Axes>> lies;
    for (auto [t, operand] : llvm::enumerate(op->getOperands())) {
      if (actual[operand].partial != first.partial ||
          !llvm::all_of(operand.getUsers(), defers))
        return false;
      list[t].dims = &lies.emplace_back(actual[operand].dims);
    }
    std::vector<Axes> decided = table.decide(mesh, list, /*aggressive=*/true);
    for (auto [t, operand] : llvm::enumerate(op->getOperands()))
      if (table.dimsOf(mesh, t, decided) != actual[operand].dims)
        return false;
    for (OpResult result : op->getResults()) {
      Sharding sharding =
          table.resultSharding(mesh, result.getResultNumber(), decided);
      sharding.partial.insert(sharding.partial.end(), first.partial.begin(),
                              first.partial.end());
      llvm::sort(sharding.partial);
      actual[result] = sharding;
      noteSums(result, table, decided, list);
      llvm::append_range(sums[result],
                         std::vector<FactorAxis>(sums[op->getOperand(0)]));
    }
    return true;
  }
  /// A sum is cheaper before it is broadcast.
  static bool broadcasts(Operation *op) {
    auto map = dyn_cast<MapOp>(op);
    auto elements = [](Value value) {
      return tensorType(value).getNumElements();
    };
    return map && llvm::all_of(map.getInputs(), [&](Value input) {
             return elements(input) < elements(map.getResult(0));
           });
  }
  static bool defers(Operation *user) {
    return isa<AccumulateOp>(user) || isLinear(user);
  }

  /// All that is added to one state must be partial over the same axes; the
  /// others are reduced before.
  void accumulate() {
    for (auto &[key, ops] : accumulations) {
      const Sharding &first = actual[ops[0].getValue()];
      Axes common = first.partial;
      for (AccumulateOp op : ops)
        llvm::erase_if(common, [&](AxisId axis) {
          return !llvm::is_contained(actual[op.getValue()].partial, axis);
        });
      Sharding stored = storedOf(ops[0]);
      for (const Axes &dim : stored.dims)
        llvm::erase_if(
            common, [&](AxisId axis) { return llvm::is_contained(dim, axis); });
      stored.partial = common;
      stored.reduction = first.reduction;
      partials[key] = {common, first.reduction, sums[ops[0].getValue()]};
      for (AccumulateOp op : ops) {
        op->setAttr(storedName, toAttr(attr, stored));
        Value value = op.getValue();
        if (actual[value] != stored)
          op.getValueMutable().assign(
              moved(value, actual[value], stored, op,
                    reasons.ofState(key, value, stored)));
      }
    }
  }

  /// `value` as `user` needs it; via its home, which all users share.
  Value inSharding(Value value, Sharding needed, Operation *user,
                   function_ref<Reason()> reason) {
    if (actual[value] == needed)
      return value;
    Value part = gatheredOnce(value, user), whole = part;
    if (actual[part] != home[value])
      whole = moved(part, actual[part], home[value], user,
                    reasons.ofHome(value, actual[part]));
    return home[value] == needed
               ? whole
               : moved(whole, home[value], needed, user, reason());
  }

  /// A weight after its gather of the step, if there is one.
  Value gatheredOnce(Value value, Operation *user) {
    Sharding part = actual[value];
    if (!isStored(value))
      return value;
    for (auto [dim, whole] : llvm::zip_equal(part.dims, home[value].dims))
      llvm::erase_if(dim, [&, &computed = whole](AxisId axis) {
        return !llvm::is_contained(computed, axis) &&
               llvm::is_contained(once,
                                  mesh::wholeAxis(mesh.axes[axis].name).str());
      });
    if (part == actual[value])
      return value;
    Value &known = keptParts[value]; // of both passes
    if (known)
      return known;
    known =
        moved(value, actual[value], part, user, reasons.ofStep(value, part));
    Operation *op = known.getDefiningOp();
    dropFacts(op);
    setOfStep(op);
    return known;
  }

  /// Parameters, and what a step makes of them, may be stored in parts.
  static bool isStored(Value value) {
    Operation *op = value.getDefiningOp();
    return op && (isa<transformer::ParameterOp>(op) || isOfStep(op));
  }

  /// A reshard, shared with others of the same value. Parameters that are split
  /// further when stored, and what a step makes of them, are gathered twice:
  /// once for the forward and once for the backward pass. So they need not be
  /// kept between the two.
  Value moved(Value value, Sharding from, Sharding to, Operation *user,
              const Reason &reason) {
    bool inBackward = isBackward(user);
    Value &known = cache[{value.getAsOpaquePointer(), to.text(mesh),
                          isStored(value) && inBackward}];
    if (known)
      return known;
    Value noted = original.contains(value) ? original.lookup(value) : value;
    builder.setInsertionPoint(user);
    auto reshard = mesh::ReshardOp::create(
        builder, value.getLoc(), value.getType(), value, toAttr(attr, from),
        toAttr(attr, to), causeOf(notesOn(noted), reason));
    inheritFacts(user, reshard);
    known = reshard.getResult();
    original[known] = noted;
    std::vector<mesh::Move> &moves = notesOn(noted).moves;
    notes().reshards[reshard] = {placeOf(noted), moves.size()};
    moves.push_back({sharding::textOf(mesh, from),
                     sharding::textOf(mesh, to),
                     sentence(reason, reason.told),
                     phaseOf(inBackward),
                     {}});
    home[known] = actual[known] = to;
    return known;
  }

  /// What gave way is told of the value; here who and what for is enough.
  mesh::CauseAttr causeOf(const mesh::ValueStory &value, const Reason &reason) {
    auto text = [&](const std::string &text) {
      return builder.getStringAttr(text);
    };
    return mesh::CauseAttr::get(builder.getContext(), text(sharedName(value)),
                                value.layer, text(reason.user),
                                reason.userLayer, text(reason.text),
                                llvm::map_to_vector(reason.annotations, text));
  }

  mesh::Provenance &notes() { return mesh::provenanceOf(function); }
  std::string phaseOf(bool inBackward) {
    return roleOf(function) == StepFunction::update ? "update"
           : inBackward                             ? "backward"
                                                    : "forward";
  }

  func::FuncOp function;
  mesh::MeshAttr attr;
  Mesh mesh;
  StatePartials &partials;
  ArrayRef<std::string> once;
  ParameterValues ofParameters;
  llvm::DenseSet<Value> accumulated;
  OpBuilder builder;
  ValueShardings shardings;
  llvm::MapVector<Value, Sharding> &actual = shardings.actual;
  llvm::DenseMap<Value, Sharding> &home = shardings.home;
  llvm::DenseMap<Value, std::vector<FactorAxis>> &sums = shardings.sums;
  Reasons reasons;
  llvm::DenseMap<Value, Value> original; // of what a reshard moved
  std::map<std::tuple<const void *, std::string, bool>, Value> cache;
  llvm::DenseMap<Value, Value> keptParts; // of weights, through a step
  std::map<StateKey, SmallVector<AccumulateOp>> accumulations;
};

struct InsertReshardsPass : impl::InsertReshardsPassBase<InsertReshardsPass> {
  using InsertReshardsPassBase::InsertReshardsPassBase;

  void runOnOperation() override {
    // Values change from here on: their notes stay, what finds them goes.
    llvm::scope_exit forget([&] {
      mesh::Provenance &notes = mesh::provenanceOf(getOperation());
      notes.places.clear();
      notes.counts.clear();
    });
    mesh::MeshAttr attr = mesh::meshOf(getOperation());
    StatePartials partials; // @microbatch decides, @update reads
    for (StepFunction which :
         {StepFunction::microbatch, StepFunction::update}) {
      auto function = functionOf(getOperation(), which);
      if (!function || !attr) {
        getOperation().emitError() << "expected a function @" << symbolOf(which)
                                   << " and the attribute mesh.mesh";
        return signalPassFailure();
      }
      if (failed(Insertion(function, attr, partials, once).run()))
        return signalPassFailure();
    }
  }
};
} // namespace
} // namespace meshwork::partition
