// Values that several passes over a row need and that cost much to compute
// (exponentials, random masks) are kept for the row, in f32 on the stack.
#include "passes/codegen/KernelLoops.h"

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

  SmallVector<Value> run() {
    SmallVector<Value> kept;
    if (walk.cols.empty() || walk.passes.empty() || !rotationsOf(walk).empty())
      return kept;
    markPasses();
    int64_t bytes = 0, rowBytes = walk.numCols * 4;
    for (Operation &op : FusedOp(walk.op).getBody().front().without_terminator()) {
      auto map = dyn_cast<MapOp>(op);
      if (!map)
        continue;
      int64_t cost = 0;
      map.getBody().walk([&](Operation *inner) { cost += costOf(inner); });
      for (Value input : map.getInputs())
        cost += costs.lookup(input);
      bool isKept = cost >= worthKeeping && passes[map].size() > 1 && hasAllCols(map.getResult(0)) &&
                    bytes + rowBytes * map.getNumResults() <= maxScratchBytes;
      for (Value result : map.getResults()) {
        costs[result] = isKept ? 1 : cost;
        if (isKept)
          kept.push_back(result);
      }
      bytes += isKept ? rowBytes * map.getNumResults() : 0;
    }
    return kept;
  }

private:
  void markPasses() {
    auto yield = cast<YieldOp>(FusedOp(walk.op).getBody().front().getTerminator());
    for (auto [pass, reductions] : llvm::enumerate(walk.passes))
      for (ReduceOp reduce : reductions)
        mark(reduce.getInput(), pass);
    for (auto [access, value] : llvm::zip_equal(walk.results, yield.getValues()))
      if (walk.hasCols(access))
        mark(value, walk.storePass);
  }

  /// Notes that `value` is computed at each column in `pass`.
  void mark(Value value, unsigned pass) {
    Operation *def = value.getDefiningOp();
    if (!def)
      return;
    auto reduce = dyn_cast<ReduceOp>(def);
    if ((reduce && walk.formOf(reduce) == ReduceForm::columns) || !passes[def].insert(pass))
      return;
    for (Value operand : def->getOperands())
      mark(operand, pass);
  }

  bool hasAllCols(Value value) {
    return llvm::all_of(walk.cols, [&](const LoopDim &dim) { return dimsOf(value).find(dim.key) >= 0; }) &&
           llvm::all_of(dimsOf(value).getNames(), [&](StringAttr name) {
             return FusedOp(walk.op).getRows().find(name) >= 0 || FusedOp(walk.op).getCols().find(name) >= 0;
           });
  }

  const Walk &walk;
  DenseMap<Operation *, llvm::SmallSetVector<unsigned, 4>> passes;
  DenseMap<Value, int64_t> costs;
};
} // namespace

SmallVector<Value> scratchValues(const Walk &walk) { return ScratchPlanner(walk).run(); }

Access scratchAccess(const Walk &walk) {
  Access access;
  access.type = RankedTensorType::get({walk.numCols}, Float32Type::get(walk.op->getContext()));
  int64_t stride = 1;
  for (const LoopDim &dim : llvm::reverse(walk.cols)) {
    access.strides[dim.key] = stride;
    stride *= dim.size;
  }
  return access;
}

} // namespace meshwork::codegen
