// Joins dims into loops, classifies reductions and orders them into passes.
#include "passes/codegen/Walk.h"
#include "dialects/transformer/Dims.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;

SmallVector<int64_t> rowMajor(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i > 1; --i)
    strides[i - 2] = strides[i - 1] * shape[i - 1];
  return strides;
}

Layout contiguousLayout(Type type) {
  return {rowMajor(cast<RankedTensorType>(type).getShape()), 16};
}

KernelSpec contiguousSpec(FusedOp op, StringRef symbol) {
  KernelSpec spec{op, {}, {}, symbol.str()};
  for (Type type : op.getInputs().getTypes())
    spec.inputs.push_back(contiguousLayout(type));
  for (Type type : op.getResultTypes())
    spec.results.push_back(contiguousLayout(type));
  return spec;
}

bool Walk::isChunked(unsigned result) const {
  auto yield = cast<YieldOp>(FusedOp(op).getBody().front().getTerminator());
  return yield.getOperand(result).getType() != op->getResult(result).getType();
}

bool Walk::hasCols(const Access &access) const {
  return llvm::any_of(
      cols, [&](const LoopDim &dim) { return access.along(dim.key) != 0; });
}

ReduceForm Walk::formOf(ReduceOp reduce) const {
  auto reduces = [&](DimsAttr dims) {
    return llvm::any_of(reduce.getDims().getNames(),
                        [&](StringAttr name) { return dims.find(name) >= 0; });
  };
  if (reduces(FusedOp(op).getRows()))
    return ReduceForm::rows;
  return reduces(FusedOp(op).getCols()) ? ReduceForm::columns
                                        : ReduceForm::vertical;
}

namespace {
class Planner {
public:
  explicit Planner(const KernelSpec &spec) : spec(spec), op(spec.op) {
    walk.op = op;
  }

  FailureOr<Walk> run() {
    walk.chunkKey = StringAttr::get(op->getContext(), "chunk of results");
    if (failed(noteSizes()) || failed(checkRolls()) ||
        failed(checkReductions()) || failed(checkResults()) ||
        failed(makeAccesses()))
      return failure();
    pinDims();
    walk.rows = join(op.getRows());
    walk.cols = join(op.getCols());
    if (failed(countElements()))
      return failure();
    if (failed(splitItems()))
      return failure();
    orderPasses();
    return std::move(walk);
  }

private:
  LogicalResult noteType(Type type) {
    auto tensor = cast<RankedTensorType>(type);
    if (!tensor.hasStaticShape() || llvm::is_contained(tensor.getShape(), 0))
      return op.emitOpError() << "holds " << type
                              << ", expected a static shape without empty dims";
    Type element = tensor.getElementType();
    if (!isWideFloat(element) && !isNarrow(element) && !element.isInteger(32))
      return op.emitOpError()
             << "holds " << type
             << ", expected elements of f32, bf16, f8, i8 or i32";
    if (tensor.getRank() && !tensor.getEncoding())
      return op.emitOpError() << "holds " << type << ", expected named dims";
    for (auto [name, size] :
         llvm::zip_equal(dimsOf(type).getNames(), tensor.getShape())) {
      auto [known, isNew] = sizes.try_emplace(name, size);
      if (!isNew && known->second != size && name != dims::chunks)
        return op.emitOpError()
               << "has dim '" << name.getValue() << "' with sizes "
               << known->second << " and " << size;
    }
    return success();
  }

  LogicalResult noteSizes() {
    for (Type type :
         llvm::concat<Type>(SmallVector<Type>(op.getInputs().getTypes()),
                            SmallVector<Type>(op.getResultTypes())))
      if (failed(noteType(type)))
        return failure();
    for (Operation &inner : op.getBody().front())
      for (Type type : inner.getResultTypes())
        if (failed(noteType(type)))
          return failure();
    for (DimsAttr dims : {op.getRows(), op.getCols()})
      for (StringAttr name : dims.getNames())
        if (!sizes.count(name))
          return op.emitOpError() << "walks dim '" << name.getValue()
                                  << "' that none of its tensors has";
    return success();
  }

  LogicalResult checkRolls() {
    ArrayRef<StringAttr> cols = op.getCols().getNames();
    WalkResult result = op.getBody().walk([&](Operation *inner) -> WalkResult {
      if (auto roll = dyn_cast<RollOp>(inner))
        if (StringAttr dim = dimsOf(roll.getResult()).getNames().back();
            cols.empty() || cols.back() != dim)
          return roll.emitOpError()
                 << "rolls '" << dim.getValue()
                 << "', expected the last of the cluster's cols";
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  LogicalResult checkReductions() {
    for (ReduceOp reduce : op.getBody().front().getOps<ReduceOp>()) {
      int64_t rows = 0, cols = 0, others = 0;
      for (StringAttr name : reduce.getDims().getNames()) {
        rows += op.getRows().find(name) >= 0;
        cols += op.getCols().find(name) >= 0;
        others += op.getRows().find(name) < 0 && op.getCols().find(name) < 0;
      }
      if (cols && cols != static_cast<int64_t>(op.getCols().getNames().size()))
        return reduce.emitOpError()
               << "reduces " << cols << " of " << op.getCols().getNames().size()
               << " cols of its cluster, expected all or none";
      if (others && rows + cols)
        return reduce.emitOpError()
               << "reduces dims of the cluster's walk together with others, "
                  "expected one kind";
      if (!isa<FloatType>(tensorType(reduce.getInput()).getElementType()))
        return reduce.emitOpError() << "reduces " << reduce.getInput().getType()
                                    << ", expected floats";
      if (rows)
        for (Operation *user : reduce->getUsers())
          if (!isa<YieldOp>(user))
            return reduce.emitOpError()
                   << "reduces rows and is used within the cluster, expected "
                      "only to be yielded";
    }
    return success();
  }

  LogicalResult checkResults() {
    auto yield = cast<YieldOp>(op.getBody().front().getTerminator());
    for (auto [i, value] : llvm::enumerate(yield.getValues())) {
      auto reduce = value.getDefiningOp<ReduceOp>();
      bool sumsRows = reduce && walk.formOf(reduce) == ReduceForm::rows;
      if (walk.isChunked(i) != sumsRows)
        return op.emitOpError()
               << "result " << i << " is " << op->getResult(i).getType()
               << ", expected "
               << (sumsRows ? "a leading dim `chunk` as it is reduced over rows"
                            : "no leading dim `chunk` as it is not reduced "
                              "over rows");
      auto missing = [&](DimsAttr dims) {
        return llvm::count_if(dims.getNames(), [&](StringAttr name) {
          return sizes[name] != 1 && dimsOf(value).find(name) < 0;
        });
      };
      if (!sumsRows && missing(op.getRows()))
        return op.emitOpError() << "result " << i
                                << " lacks a dim of rows, expected all of them";
      int64_t cols =
          llvm::count_if(op.getCols().getNames(),
                         [&](StringAttr name) { return sizes[name] != 1; });
      if (int64_t lacks = missing(op.getCols()); lacks && lacks != cols)
        return op.emitOpError()
               << "result " << i
               << " has some dims of cols, expected all or none";
    }
    return success();
  }

  Access makeAccess(RankedTensorType type, ArrayRef<int64_t> strides,
                    bool chunked) {
    Access access;
    access.type = type;
    for (auto [i, name] : llvm::enumerate(dimsOf(type).getNames()))
      if (type.getDimSize(i) != 1)
        access.strides[chunked && i == 0 ? walk.chunkKey : name] = strides[i];
    return access;
  }

  LogicalResult makeAccesses() {
    auto make = [&](TypeRange types, ArrayRef<Layout> layouts, bool isResult,
                    SmallVector<Access> &accesses) -> LogicalResult {
      if (types.size() != layouts.size())
        return op.emitOpError() << "has " << types.size()
                                << (isResult ? " results" : " operands")
                                << " but " << layouts.size() << " layouts";
      for (auto [i, type] : llvm::enumerate(types)) {
        auto tensor = cast<RankedTensorType>(type);
        if (static_cast<int64_t>(layouts[i].strides.size()) != tensor.getRank())
          return op.emitOpError() << "has " << layouts[i].strides.size()
                                  << " strides for " << type;
        accesses.push_back(makeAccess(tensor, layouts[i].strides,
                                      isResult && walk.isChunked(i)));
      }
      return success();
    };
    return success(
        succeeded(
            make(op.getInputs().getTypes(), spec.inputs, false, walk.inputs)) &&
        succeeded(make(op.getResultTypes(), spec.results, true, walk.results)));
  }

  /// Dims that code names by themselves cannot be joined with others; the
  /// positions that draws count can where they are row-major.
  void pinDims() {
    op.getBody().walk([&](Operation *inner) {
      if (auto index = dyn_cast<IndexOp>(inner))
        pinned.insert(index.getDimAttr());
      if (auto roll = dyn_cast<RollOp>(inner);
          roll && !dimsOf(roll.getResult()).getNames().empty())
        pinned.insert(dimsOf(roll.getResult()).getNames().back());
      if (auto draw = dyn_cast<DrawOpInterface>(inner)) {
        auto space = tensorType(inner->getParentOp()->getResult(0));
        counted.push_back(makeAccess(
            space, rowMajor(draw.getSpace().value_or(space.getShape())),
            false));
      }
    });
  }

  bool joins(StringAttr outer, StringAttr inner) {
    if (pinned.contains(outer) || pinned.contains(inner))
      return false;
    auto fits = [&](const Access &access) {
      return access.along(outer) == access.along(inner) * sizes[inner] &&
             access.strides.count(outer) == access.strides.count(inner);
    };
    return llvm::all_of(walk.inputs, fits) &&
           llvm::all_of(walk.results, fits) && llvm::all_of(counted, fits);
  }

  SmallVector<LoopDim> join(DimsAttr dims) {
    SmallVector<LoopDim> loops;
    for (StringAttr name : dims.getNames()) {
      if (sizes[name] == 1)
        continue;
      int64_t joined;
      if (!loops.empty() && joins(loops.back().key, name) &&
          !llvm::MulOverflow(loops.back().size, sizes[name], joined))
        loops.back() = {name, joined};
      else
        loops.push_back({name, sizes[name]});
    }
    return loops;
  }

  LogicalResult countElements() {
    for (auto [loops, product] : {std::pair(&walk.rows, &walk.numRows),
                                  std::pair(&walk.cols, &walk.numCols)})
      for (const LoopDim &loop : *loops)
        if (llvm::MulOverflow(*product, loop.size, *product) ||
            *product > INT64_MAX / 65536)
          return op.emitOpError() << "has more than 2^47 rows or columns";
    return success();
  }

  /// Columns that are several loops, or that wrap around, have no blocks; their
  /// outer loops are then the rows, shared evenly.
  LogicalResult splitItems() {
    ItemCount count = countWalkItems(op);
    walk.split = count.split;
    walk.items = count.items;
    walk.rowsPerItem = count.rowsPerItem;
    if (walk.split == Split::columnBlocks &&
        (walk.cols.size() != 1 || rolls())) {
      walk.split = Split::rowShares;
      while (walk.cols.size() > 1) {
        walk.rows.push_back(walk.cols.front());
        walk.numRows *= walk.cols.front().size;
        walk.numCols /= walk.cols.front().size;
        walk.cols.erase(walk.cols.begin());
      }
    }
    int64_t product; // of an item's number and the rows, when these are shared
    if (llvm::MulOverflow(walk.items, walk.numRows, product) &&
        walk.split != Split::rowBlocks)
      return op.emitOpError() << "shares " << walk.numRows << " rows among "
                              << walk.items << " items, too many to count";
    return success();
  }

  bool rolls() {
    return llvm::any_of(op.getBody().front().getOps<RollOp>(),
                        [](RollOp roll) { return roll.getShift() != 0; });
  }

  /// Number of passes over the row that must end before `value` is known.
  unsigned depthOf(Value value) {
    Operation *def = value.getDefiningOp();
    if (!def)
      return 0;
    if (auto known = depths.find(value); known != depths.end())
      return known->second;
    unsigned depth = 0;
    for (Value operand : def->getOperands())
      depth = std::max(depth, depthOf(operand));
    if (auto reduce = dyn_cast<ReduceOp>(def); reduce && reducesCols(reduce)) {
      if (walk.passes.size() <= depth)
        walk.passes.resize(depth + 1);
      walk.passes[depth].push_back(reduce);
      ++depth;
    }
    return depths[value] = depth;
  }

  bool reducesCols(ReduceOp reduce) {
    return llvm::any_of(reduce.getDims().getNames(), [&](StringAttr name) {
      return op.getCols().find(name) >= 0;
    });
  }

  void orderPasses() {
    auto yield = cast<YieldOp>(op.getBody().front().getTerminator());
    for (auto [i, value] : llvm::enumerate(yield.getValues())) {
      unsigned depth = depthOf(value);
      if (walk.hasCols(walk.results[i]))
        walk.storePass = std::max(walk.storePass, depth);
    }
    if (!walk.passes.empty())
      walk.storePass =
          std::max<unsigned>(walk.storePass, walk.passes.size() - 1);
  }

  const KernelSpec &spec;
  FusedOp op;
  Walk walk;
  llvm::SmallDenseMap<StringAttr, int64_t> sizes;
  llvm::SmallPtrSet<Attribute, 4> pinned;
  SmallVector<Access> counted;
  DenseMap<Value, unsigned> depths;
};
} // namespace

FailureOr<Walk> planWalk(const KernelSpec &spec) { return Planner(spec).run(); }

} // namespace meshwork::codegen
