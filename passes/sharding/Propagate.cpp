// Propagation: each op's tensors agree on its factors, again and again, until
// nothing changes.
//
// The order of decisions: user priorities, strongest first; in each,
// elementwise and movement ops before all others; in each, agreement only
// (basic), then the strongest wins (aggressive, FactorTable::decide). Ops are
// visited in the order of the program and back. So the result depends on the
// program alone. An op is visited again only when one of its tensors has
// changed: else it would decide the same.
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/sharding/DimRoles.h"
#include "passes/sharding/Notes.h"
#include "passes/sharding/Passes.h"
#include "passes/sharding/Ulysses.h"
#include <set>

using namespace mlir;
namespace meshwork::sharding {
#define GEN_PASS_DEF_PROPAGATEPASS
#include "passes/sharding/Passes.h.inc"
namespace {
using namespace transformer;

/// One dim of a value on its way.
struct DimState {
  Axes axes;
  bool isOpen = true;
  int64_t priority = 0;
};
using ValueState = std::vector<DimState>;

/// Ops that move or map elements: their tensors should lie alike.
bool isElementwise(Operation *op) {
  return cast<TensorOpInterface>(op).isElementwise();
}

class Propagation {
public:
  Propagation(func::FuncOp function, mesh::MeshAttr attr)
      : function(function), attr(attr), mesh(meshFrom(attr)),
        roles(function->getParentOfType<ModuleOp>()) {}

  void run() {
    nameAll(function);
    readSeeds();
    for (int64_t level : levels)
      for (bool aggressive : {false, true}) {
        markAll();
        for (bool elementwiseOnly : {true, false})
          fixpoint(level, aggressive, elementwiseOnly);
      }
    write();
  }

private:
  void readSeeds() {
    auto add = [&](Value value) {
      if (!isa<RankedTensorType>(value.getType()))
        return;
      ValueState state(tensorType(value).getRank());
      mesh::ShardingAttr seed = mesh::shardingOf(value);
      if (seed && !seed.getReplicated().empty())
        replicatedOver[value] = idsOf(attr, seed.getReplicated());
      if (seed)
        for (auto [dim, given] : llvm::zip_equal(state, seed.getDims())) {
          dim = {fromAttr(attr,
                          mesh::ShardingAttr::get(attr.getContext(), given, {},
                                                  {}, mesh::Reduction::sum))
                     .dims[0],
                 given.getIsOpen(), given.getPriority()};
          levels.insert(given.getPriority());
        }
      states[value] = std::move(state);
    };
    llvm::for_each(function.getArguments(), add);
    function.walk([&](Operation *op) {
      if (op->getParentOp() == function)
        llvm::for_each(op->getResults(), add);
    });
    linkStates();
  }

  /// A value written to a state has the sharding of the values read from it.
  /// Along these edges shardings flow from one execution of the function to the
  /// next.
  void linkStates() {
    llvm::MapVector<StringRef, SmallVector<Value>> groups;
    for (Operation &op : function.getBody().front()) {
      if (auto parameter = dyn_cast<transformer::ParameterOp>(op))
        groups[parameter.getName()].push_back(parameter.getResult());
      else if (auto accumulate = dyn_cast<AccumulateOp>(op);
               accumulate && accumulate.getKind() == StateKind::gradient)
        groups[accumulate.getName()].push_back(accumulate.getValue());
    }
    for (auto &[name, values] : groups)
      for (Value value : values)
        if (!name.empty()) {
          parameters.insert(value);
          linked[value] = values.front();
        }
  }

  void markAll() {
    for (Operation &op : function.getBody().front())
      if (isa<FactorOpInterface>(op))
        stale.insert(&op);
  }

  /// What decides by `value`.
  void markAround(Value value) {
    auto mark = [&](Operation *op) {
      if (op && op->getParentOp() == function && isa<FactorOpInterface>(op))
        stale.insert(op);
    };
    mark(value.getDefiningOp());
    llvm::for_each(value.getUsers(), mark);
  }

  void fixpoint(int64_t level, bool aggressive, bool elementwiseOnly) {
    SmallVector<Operation *> ops;
    for (Operation &op : function.getBody().front())
      if (isa<FactorOpInterface>(op) &&
          (!elementwiseOnly || isElementwise(&op)))
        ops.push_back(&op);
    bool changed = true;
    while (changed) {
      changed = false;
      for (Operation *op : ops)
        changed |= visit(op, level, aggressive);
      for (Operation *op : llvm::reverse(ops))
        changed |= visit(op, level, aggressive);
      changed |= followLinks();
    }
  }

  bool visit(Operation *op, int64_t level, bool aggressive) {
    if (!stale.erase(op))
      return false;
    FactorTable &table = tableOf(op);
    SmallVector<Proposal> proposals = proposalsOf(table, level);
    std::vector<Axes> decided = table.decide(mesh, proposals, aggressive);
    bool changed = false;
    for (unsigned t = 0; t < table.numTensors(); ++t)
      changed |= extend(table.tensor(t), table.dimsOf(mesh, t, decided),
                        [&](size_t dim, AxisId axis) {
                          return causeOf(op, t, dim, axis, proposals);
                        });
    return changed;
  }

  /// They stand in `lies` until the next op's do: most visits change nothing,
  /// and would spend their time on memory.
  SmallVector<Proposal> proposalsOf(const FactorTable &table, int64_t level) {
    if (lies.size() < table.numTensors())
      lies.resize(table.numTensors());
    SmallVector<Proposal> proposals;
    for (auto [value, dims] : llvm::zip(table.values(), lies)) {
      const ValueState &state = states[value];
      dims.resize(state.size());
      for (auto [axes, dim] : llvm::zip_equal(dims, state))
        if (dim.priority <= level)
          axes = dim.axes;
        else
          axes.clear();
      proposals.push_back(
          {&dims, parameters.contains(value) || ofParameters.contains(value)});
    }
    return proposals;
  }

  /// The tensor of `op` that a dim follows: one that had the axis before.
  mesh::DimCause causeOf(Operation *op, unsigned tensor, int64_t dim,
                         AxisId axis, ArrayRef<Proposal> proposals) {
    FactorTable &table = tableOf(op);
    mesh::DimCause cause{
        mesh.axes[axis].name, "", op->getName().stripDialect().str(), "", 0, 0};
    for (const transformer::Factor &factor : table.factors())
      for (auto [t, proposal] : llvm::enumerate(proposals)) {
        int64_t other = table.dimOf(t, factor);
        if (table.dimOf(tensor, factor) == dim && other >= 0 &&
            llvm::is_contained((*proposal.dims)[other], axis) &&
            (cause.factor.empty() || proposal.isParameter)) {
          cause.factor = factor.name.str();
          cause.from = placeOf(table.tensor(t));
          cause.fromDim = other;
        }
      }
    return cause;
  }

  /// Takes what goes on from a dim's present axes, fits, and is not used.
  bool extend(Value value, const std::vector<Axes> &wanted,
              function_ref<mesh::DimCause(size_t, AxisId)> cause) {
    ValueState &state = states[value];
    bool changed = false;
    for (auto [i, dim] : llvm::enumerate(state)) {
      const Axes &axes = wanted[i];
      if (!dim.isOpen || axes.size() <= dim.axes.size() ||
          !std::equal(dim.axes.begin(), dim.axes.end(), axes.begin()))
        continue;
      for (AxisId axis : ArrayRef(axes).drop_front(dim.axes.size())) {
        bool isUsed = llvm::any_of(state, [&](const DimState &other) {
          return llvm::is_contained(other.axes, axis);
        });
        isUsed |= llvm::is_contained(replicatedOver.lookup(value), axis);
        StringRef name = dimsOf(tensorType(value)).getNames()[i];
        if (isUsed || (roles.isCounted(name) &&
                       tensorType(value).getDimSize(i) %
                           (mesh.numRanks(dim.axes) * mesh.axes[axis].size)))
          break;
        dim.axes.push_back(axis);
        mesh::DimCause why =
            cause(i, axis); // It may name values, so that notes move.
        notesOn(value).dims[i].causes.push_back(std::move(why));
        changed = true;
      }
    }
    if (changed)
      markAround(value);
    return changed;
  }

  bool followLinks() {
    bool changed = false;
    auto copy = [&](Value from, Value to) {
      std::vector<Axes> dims;
      for (const DimState &dim : states[from])
        dims.push_back(dim.axes);
      changed |= extend(to, dims, [&](size_t dim, AxisId axis) {
        return mesh::DimCause{mesh.axes[axis].name, "", "state", "",
                              placeOf(from),        dim};
      });
    };
    for (auto [value, first] : linked)
      if (value != first) {
        copy(value, first);
        copy(first, value);
      }
    return changed;
  }

  void write() {
    for (auto &[value, state] : states) {
      Sharding sharding = replicated(state.size());
      for (auto [dim, axes] : llvm::zip_equal(state, sharding.dims))
        axes = dim.axes;
      mesh::setSharding(value, toAttr(attr, sharding));
    }
  }

  FactorTable &tableOf(Operation *op) {
    auto &table = tables[op];
    if (!table)
      table = std::make_unique<FactorTable>(op);
    return *table;
  }

  func::FuncOp function;
  mesh::MeshAttr attr;
  Mesh mesh;
  DimRoles roles;
  llvm::MapVector<Value, ValueState> states;
  std::vector<std::vector<Axes>> lies;  // of the op that is visited
  llvm::MapVector<Value, Value> linked; // to the first value of its state
  llvm::DenseSet<Value> parameters;     // and what is accumulated in them
  ParameterValues ofParameters;
  llvm::DenseMap<Value, Axes> replicatedOver; // as given
  std::set<int64_t> levels = {0};
  llvm::DenseMap<Operation *, std::unique_ptr<FactorTable>> tables;
  llvm::DenseSet<Operation *> stale; // to be visited
};

struct PropagatePass : impl::PropagatePassBase<PropagatePass> {
  using PropagatePassBase::PropagatePassBase;
  void runOnOperation() override {
    auto target = getOperation().lookupSymbol<func::FuncOp>(function);
    mesh::MeshAttr attr = mesh::meshOf(getOperation());
    if (!target || !attr) {
      getOperation().emitError() << "expected a function @" << function
                                 << " and the attribute mesh.mesh";
      return signalPassFailure();
    }
    Propagation(target, attr).run();
    if (failed(checkHeads(target, attr)))
      signalPassFailure();
  }
};
} // namespace
} // namespace meshwork::sharding
