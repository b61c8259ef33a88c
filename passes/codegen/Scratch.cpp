// Values that several passes over a row need and that cost much to compute
// (exponentials, random masks) are kept for the row, in f32 on the stack. They
// are found by number: equal expressions of different maps are one value.
#include "passes/codegen/KernelLoops.h"

#include <map>
#include <tuple>

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;
namespace {
/// From this many instructions on, storing and loading costs less.
constexpr int64_t worthKeeping = 14;
/// Of the stack, for all of a kernel; also less than a core's second cache.
constexpr int64_t maxScratchBytes = 256 << 10;

class ScratchPlanner {
public:
  explicit ScratchPlanner(const Walk &walk) : walk(walk) {}

  DenseMap<Value, unsigned> run() {
    DenseMap<Value, unsigned> kept;
    if (walk.cols.empty() || walk.passes.empty() || !rotationsOf(walk).empty())
      return kept;
    markPasses();
    llvm::SmallDenseMap<unsigned, unsigned>
        places; // number of a value -> of its row of scratch
    int64_t most = maxScratchBytes / (walk.numCols * 4);
    for (MapOp map : FusedOp(walk.op).getBody().front().getOps<MapOp>())
      for (Operation &op : map.getBody().front().without_terminator()) {
        Value value = op.getResult(0);
        unsigned number = numberOf(value);
        if (!op.getResult(0).getType().isF32() || passes[number].size() < 2 ||
            !isOfRow(map))
          continue;
        int64_t cost = costOf(value);
        bool isKnown = places.count(number);
        if (!isKnown && (cost < worthKeeping ||
                         static_cast<int64_t>(places.size()) >= most))
          continue;
        kept[value] = places.try_emplace(number, places.size()).first->second;
        costs[number] = 1;
      }
    return kept;
  }

private:
  /// Equal numbers are equal values at each place.
  unsigned numberOf(Value value) {
    if (auto known = numbers.find(value); known != numbers.end())
      return known->second;
    return numbers[value] = makeNumber(value);
  }

  unsigned makeNumber(Value value) {
    Operation *def = value.getDefiningOp();
    if (!def) {
      auto argument = cast<BlockArgument>(value);
      auto map = dyn_cast<MapOp>(argument.getOwner()->getParentOp());
      return map ? numberOf(map.getInputs()[argument.getArgNumber()]) : next++;
    }
    if (auto map = dyn_cast<MapOp>(def))
      return numberOf(map.getBody().front().getTerminator()->getOperand(
          cast<OpResult>(value).getResultNumber()));
    if (!isa<MapOp>(def->getParentOp()))
      return next++;
    std::vector<unsigned> operands;
    for (Value operand : def->getOperands())
      operands.push_back(numberOf(operand));
    // Positions are those in the map's space.
    Type space = isa<IndexOp, DrawOpInterface>(def)
                     ? def->getParentOp()->getResult(0).getType()
                     : Type();
    Expression key(def->getName().getAsOpaquePointer(),
                   def->getAttrDictionary().getAsOpaquePointer(),
                   space.getAsOpaquePointer(), operands);
    auto [known, isNew] = expressions.try_emplace(key, next);
    next += isNew;
    return known->second;
  }

  void markPasses() {
    auto yield =
        cast<YieldOp>(FusedOp(walk.op).getBody().front().getTerminator());
    for (auto [pass, reductions] : llvm::enumerate(walk.passes))
      for (ReduceOp reduce : reductions)
        mark(reduce.getInput(), pass);
    for (auto [access, value] :
         llvm::zip_equal(walk.results, yield.getValues()))
      if (walk.hasCols(access))
        mark(value, walk.storePass);
  }

  /// Notes that `value` is computed at each column in `pass`.
  void mark(Value value, unsigned pass) {
    Operation *def = value.getDefiningOp();
    if (!def) {
      auto argument = cast<BlockArgument>(value);
      if (auto map = dyn_cast<MapOp>(argument.getOwner()->getParentOp()))
        mark(map.getInputs()[argument.getArgNumber()], pass);
      return;
    }
    if (auto map = dyn_cast<MapOp>(def))
      return mark(map.getBody().front().getTerminator()->getOperand(
                      cast<OpResult>(value).getResultNumber()),
                  pass);
    auto reduce = dyn_cast<ReduceOp>(def);
    if ((reduce && walk.formOf(reduce) == ReduceForm::columns) ||
        !passes[numberOf(value)].insert(pass))
      return;
    for (Value operand : def->getOperands())
      mark(operand, pass);
  }

  /// Instructions that computing `value` at one column takes.
  int64_t costOf(Value value) {
    unsigned number = numberOf(value);
    if (auto known = costs.find(number); known != costs.end())
      return known->second;
    int64_t cost = 1;
    Operation *def = value.getDefiningOp();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (auto map = dyn_cast<MapOp>(argument.getOwner()->getParentOp()))
        cost = costOf(map.getInputs()[argument.getArgNumber()]);
    } else if (auto map = dyn_cast<MapOp>(def)) {
      cost = costOf(map.getBody().front().getTerminator()->getOperand(
          cast<OpResult>(value).getResultNumber()));
    } else if (isa<MapOp>(def->getParentOp())) {
      cost = codegen::costOf(def);
      for (Value operand : def->getOperands())
        cost += isa_and_nonnull<arith::ConstantOp>(operand.getDefiningOp())
                    ? 0
                    : costOf(operand);
    }
    return costs[number] = cost;
  }

  /// Whether the map runs over rows and cols only.
  bool isOfRow(MapOp map) {
    return llvm::all_of(dimsOf(map.getResult(0)).getNames(),
                        [&](StringAttr name) {
                          return FusedOp(walk.op).getRows().find(name) >= 0 ||
                                 FusedOp(walk.op).getCols().find(name) >= 0;
                        });
  }

  using Expression = std::tuple<const void *, const void *, const void *,
                                std::vector<unsigned>>;
  const Walk &walk;
  unsigned next = 0;
  DenseMap<Value, unsigned> numbers;
  std::map<Expression, unsigned> expressions;
  DenseMap<unsigned, llvm::SmallSetVector<unsigned, 4>> passes;
  DenseMap<unsigned, int64_t> costs;
};
} // namespace

DenseMap<Value, unsigned> scratchValues(const Walk &walk) {
  return ScratchPlanner(walk).run();
}

Access scratchAccess(const Walk &walk) {
  Access access;
  access.type = RankedTensorType::get({walk.numCols},
                                      Float32Type::get(walk.op->getContext()));
  int64_t stride = 1;
  for (const LoopDim &dim : llvm::reverse(walk.cols)) {
    access.strides[dim.key] = stride;
    stride *= dim.size;
  }
  return access;
}

} // namespace meshwork::codegen
