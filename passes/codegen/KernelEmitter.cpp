// The loops of a kernel: items, rows, passes over the row's columns.
#include "passes/codegen/KernelEmitter.h"

#include <numeric>

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/codegen/KernelLoops.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;

SmallVector<int64_t> rotationsOf(const Walk &walk) {
  DenseMap<Value, llvm::SmallSetVector<int64_t, 4>> below; // of operands that a value reads
  auto of = [&](Value value) {
    auto known = below.find(value);
    llvm::SmallSetVector<int64_t, 4> zero;
    zero.insert(0);
    return known == below.end() ? zero : known->second;
  };
  llvm::SmallSetVector<int64_t, 4> all;
  for (Operation &op : FusedOp(walk.op).getBody().front().without_terminator()) {
    auto roll = dyn_cast<RollOp>(op);
    llvm::SmallSetVector<int64_t, 4> sums;
    for (Value operand : op.getOperands())
      for (int64_t sum : of(operand))
        sums.insert(roll && roll.getShift() ? (sum + static_cast<int64_t>(roll.getShift())) % walk.cols.back().size : sum);
    for (Value result : op.getResults())
      below[result] = sums;
    all.insert_range(sums);
  }
  SmallVector<int64_t> rotations(llvm::make_filter_range(all, [](int64_t sum) { return sum != 0; }));
  llvm::sort(rotations);
  return rotations;
}

namespace {
using Values = BodyEmitter::Values;

class KernelBuilder {
public:
  KernelBuilder(const Walk &walk, const CpuTarget &target) : walk(walk), target(target), body(walk, target), segments(segmentEnds(walk)) {
    auto yield = cast<YieldOp>(FusedOp(walk.op).getBody().front().getTerminator());
    yields.append(yield.operand_begin(), yield.operand_end());
  }

  /// `function` takes the streams of `dropouts` after the ABI's arguments.
  void build(LLVM::LLVMFuncOp function, ArrayRef<DropoutMaskOp> dropouts) {
    OpBuilder builder(function.getContext());
    Block *entry = function.addEntryBlock(builder);
    for (auto [dropout, stream] : llvm::zip_equal(dropouts, entry->getArguments().drop_front(3)))
      body.setStream(dropout, stream);
    body.begin(OpBuilder::atBlockEnd(entry), entry->getArgument(0), scratchValues(walk), scratchAccess(walk));
    begin = entry->getArgument(1);
    end = entry->getArgument(2);
    emitItems();
    LLVM::ReturnOp::create(body.builder(), body.loc(), ValueRange());
  }

private:
  Value mul(Value a, int64_t b) { return arith::MulIOp::create(body.builder(), body.loc(), a, body.number(b)); }
  Value div(Value a, int64_t b) { return arith::DivUIOp::create(body.builder(), body.loc(), a, body.number(b)); }
  Value least(Value a, int64_t b) { return arith::MinSIOp::create(body.builder(), body.loc(), a, body.number(b)); }
  Value share(Value item) { return div(mul(item, walk.numRows), walk.items); }

  void emitItems() {
    switch (walk.split) {
    case Split::chunks:
      body.loop(begin, end, 1, {}, [&](Value item, ValueRange) -> Values {
        body.bind(walk.chunkKey, item);
        clearChunks();
        Value next = arith::AddIOp::create(body.builder(), body.loc(), item, body.number(1));
        emitRows(share(item), share(next));
        return {};
      });
      return;
    case Split::rowShares:
      return emitRows(share(begin), share(end));
    case Split::rowBlocks:
      return emitRows(mul(begin, walk.rowsPerItem), least(mul(end, walk.rowsPerItem), walk.numRows));
    case Split::columnBlocks:
      emitColumnRange(mul(begin, columnsPerItem), least(mul(end, columnsPerItem), walk.numCols));
    }
  }

  //===-- rows --------------------------------------------------------------//

  void emitRows(Value lower, Value upper) {
    body.loop(lower, upper, 1, {}, [&](Value row, ValueRange) -> Values {
      bindRow(row);
      unsigned passes = std::max<unsigned>(walk.passes.size(), storesColumns() ? walk.storePass + 1 : 0);
      for (unsigned pass = 0; pass < passes; ++pass)
        emitPass(pass);
      storeRowResults();
      return {};
    });
  }

  void bindRow(Value row) {
    for (auto [i, dim] : llvm::enumerate(llvm::reverse(walk.rows))) {
      if (i + 1 == walk.rows.size())
        return body.bind(dim.key, row);
      body.bind(dim.key, arith::RemUIOp::create(body.builder(), body.loc(), row, body.number(dim.size)));
      row = div(row, dim.size);
    }
  }

  bool storesColumns() {
    return llvm::any_of(walk.results, [&](const Access &access) { return walk.hasCols(access); });
  }

  /// Results with a value per row, or with none: stored after the last pass.
  void storeRowResults() {
    SmallVector<std::pair<unsigned, Value>> stores;
    for (unsigned i = 0; i < walk.results.size(); ++i)
      if (!walk.hasCols(walk.results[i]))
        stores.push_back({i, resultValue(i)});
    for (auto [i, value] : stores)
      body.store(walk.results[i], value);
  }

  /// What is stored for a result: its value, or the chunk's sum with this row.
  Value resultValue(unsigned i) {
    if (!walk.isChunked(i))
      return body.eval(yields[i]).value;
    auto reduce = yields[i].getDefiningOp<ReduceOp>();
    Value part = rowSums.lookup(reduce) ? rowSums.lookup(reduce) : body.eval(reduce.getInput()).value;
    Value sum = body.loadWritten(walk.results[i]);
    if (isa<VectorType>(sum.getType()))
      part = body.splat(part);
    return arith::AddFOp::create(body.builder(), body.loc(), sum, part);
  }

  //===-- passes over columns -----------------------------------------------//

  ArrayRef<ReduceOp> reductionsOf(unsigned pass) {
    return pass < walk.passes.size() ? ArrayRef<ReduceOp>(walk.passes[pass]) : ArrayRef<ReduceOp>();
  }

  /// The values that a pass computes at each column decide its vectors' length.
  int64_t widthOf(unsigned pass) {
    SmallVector<Value> roots;
    for (ReduceOp reduce : reductionsOf(pass))
      roots.push_back(reduce.getInput());
    for (auto [access, value] : llvm::zip_equal(walk.results, yields))
      if (pass == walk.storePass && walk.hasCols(access))
        roots.push_back(value);
    return chooseWidth(walk, target, roots);
  }

  void emitPass(unsigned pass) {
    Values sums;
    width = widthOf(pass);
    body.beginPass(pass);
    body.setPlace({width, width, 0});
    for (ReduceOp reduce : reductionsOf(pass))
      sums.push_back(body.identity(body.builder(), isMax(reduce), !walk.cols.empty()));
    sums = emitColumns(pass, 0, sums);
    for (auto [i, sum] : llvm::enumerate(sums)) {
      ReduceOp reduce = reductionsOf(pass)[i];
      if (!walk.cols.empty())
        sum = combineLanes(reduce, sum);
      if (walk.formOf(reduce) == ReduceForm::rows)
        rowSums[reduce] = sum;
      else
        body.define(reduce, sum);
    }
  }

  /// One value of a vector of partial ones: halves upon halves.
  Value combineLanes(ReduceOp reduce, Value lanes) {
    OpBuilder &b = body.builder();
    for (int64_t half = width / 2; half > 0; half /= 2) {
      SmallVector<int64_t> low(half), high(half);
      std::iota(low.begin(), low.end(), 0);
      std::iota(high.begin(), high.end(), half);
      Value first = vector::ShuffleOp::create(b, body.loc(), lanes, lanes, low);
      Value second = vector::ShuffleOp::create(b, body.loc(), lanes, lanes, high);
      lanes = body.combine(b, isMax(reduce), first, second);
    }
    return vector::ExtractOp::create(b, body.loc(), lanes, 0);
  }

  static bool isMax(ReduceOp reduce) { return reduce.getKind() == Reduction::max; }

  /// Loops over the cols from `level` inwards; returns what `sums` became.
  Values emitColumns(unsigned pass, unsigned level, Values sums) {
    if (walk.cols.empty())
      return emitBody(pass, sums);
    const LoopDim &dim = walk.cols[level];
    if (level + 1 < walk.cols.size())
      return body.loop(body.number(0), body.number(dim.size), 1, sums, [&](Value position, ValueRange carried) {
        body.bind(dim.key, position);
        return emitColumns(pass, level + 1, Values(carried));
      });
    int64_t lower = 0;
    for (int64_t upper : segments) {
      sums = emitSegment(pass, lower, upper, sums);
      lower = upper;
    }
    return sums;
  }

  /// Columns [lower, upper): whole vectors, then what is left.
  Values emitSegment(unsigned pass, int64_t lower, int64_t upper, Values sums) {
    int64_t steps = (upper - lower) / width, tail = lower + steps * width;
    body.setPlace({width, width, lower});
    if (steps == 1)
      sums = emitAt(pass, lower, sums);
    if (steps > 1)
      sums = body.loop(body.number(lower), body.number(tail), width, sums, [&](Value position, ValueRange carried) {
        body.bind(walk.vectorKey(), position);
        return emitBody(pass, Values(carried));
      });
    if (tail == upper)
      return sums;
    body.setPlace({width, upper - tail, lower});
    return emitAt(pass, tail, sums);
  }

  Values emitAt(unsigned pass, int64_t column, Values sums) {
    body.open();
    body.bind(walk.vectorKey(), body.number(column));
    sums = emitBody(pass, sums);
    body.close();
    return sums;
  }

  /// Blocks of columns of a cluster without rows; the last one may end in a tail.
  void emitColumnRange(Value lower, Value upper) {
    width = widthOf(walk.storePass);
    int64_t whole = walk.numCols / width * width;
    body.setPlace({width, width, 0});
    body.loop(lower, least(upper, whole), width, {}, [&](Value position, ValueRange) {
      body.bind(walk.vectorKey(), position);
      return emitBody(walk.storePass, {});
    });
    if (whole == walk.numCols)
      return;
    // At most one turn: the tail, when the range reaches the end.
    Value first = arith::MaxSIOp::create(body.builder(), body.loc(), lower, body.number(whole));
    body.setPlace({width, walk.numCols - whole, 0});
    body.loop(first, upper, width, {}, [&](Value, ValueRange) {
      body.bind(walk.vectorKey(), body.number(whole));
      return emitBody(walk.storePass, {});
    });
  }

  Values emitBody(unsigned pass, Values sums) {
    for (auto [i, sum] : llvm::enumerate(sums)) {
      ReduceOp reduce = reductionsOf(pass)[i];
      sum = body.combine(body.builder(), isMax(reduce), sum, reducedPart(reduce));
    }
    if (pass == walk.storePass)
      storeColumns();
    return sums;
  }

  /// A reduction's next elements; those past the end change nothing.
  Value reducedPart(ReduceOp reduce) {
    Value part = body.eval(reduce.getInput()).value;
    if (walk.cols.empty())
      return part;
    part = body.splat(part);
    if (Value mask = body.activeMask(body.builder()))
      part = arith::SelectOp::create(body.builder(), body.loc(), mask, part,
                                     body.identity(body.builder(), isMax(reduce), true));
    return part;
  }

  /// All values first: a store may overwrite an operand.
  void storeColumns() {
    SmallVector<std::pair<unsigned, Value>> stores;
    for (unsigned i = 0; i < walk.results.size(); ++i)
      if (walk.hasCols(walk.results[i]))
        stores.push_back({i, resultValue(i)});
    for (auto [i, value] : stores)
      body.store(walk.results[i], value);
  }

  //===-- chunks ------------------------------------------------------------//

  void clearChunks() {
    SmallVector<LoopDim> dims(walk.rows);
    dims.append(walk.cols);
    width = chooseWidth(walk, target, {});
    for (unsigned i = 0; i < walk.results.size(); ++i)
      if (walk.isChunked(i))
        clear(walk.results[i], dims);
  }

  void clear(const Access &access, ArrayRef<LoopDim> dims) {
    Value zero = arith::ConstantOp::create(body.builder(), body.loc(), body.builder().getF32FloatAttr(0));
    while (!dims.empty() && !access.along(dims.front().key))
      dims = dims.drop_front();
    if (dims.empty()) {
      body.store(access, zero);
      return;
    }
    const LoopDim &dim = dims.front();
    bool isVector = dim.key == walk.vectorKey();
    int64_t step = isVector ? width : 1, whole = dim.size / step * step;
    auto at = [&](Value position) {
      body.bind(dim.key, position);
      clear(access, dims.drop_front());
    };
    body.setPlace({width, width, 0});
    body.loop(body.number(0), body.number(whole), step, {}, [&](Value position, ValueRange) -> Values {
      at(position);
      return {};
    });
    if (whole == dim.size)
      return;
    body.setPlace({width, dim.size - whole, 0});
    body.open();
    at(body.number(whole));
    body.close();
  }

  const Walk &walk;
  const CpuTarget &target;
  BodyEmitter body;
  SmallVector<int64_t> segments; // their ends
  int64_t width = 1;             // of the current pass
  Value begin, end;
  SmallVector<Value> yields;
  DenseMap<Operation *, Value> rowSums; // this row's part of sums over rows and cols
};
} // namespace

void loadKernelDialects(MLIRContext &context) {
  context.loadDialect<arith::ArithDialect, cf::ControlFlowDialect, LLVM::LLVMDialect, math::MathDialect, scf::SCFDialect,
                      vector::VectorDialect>();
}

namespace {
using Dropouts = SmallVector<DropoutMaskOp>;

LLVM::LLVMFuncOp addFunction(ModuleOp module, Location loc, const std::string &name, unsigned numStreams) {
  MLIRContext *context = module.getContext();
  auto i64 = IntegerType::get(context, 64);
  SmallVector<Type> types = {LLVM::LLVMPointerType::get(context), i64, i64};
  types.append(numStreams, IntegerType::get(context, 32));
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types);
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  return LLVM::LLVMFuncOp::create(builder, loc, name, type);
}

/// The kernel as a call of `body` with its dropouts' streams.
void addCall(LLVM::LLVMFuncOp kernel, LLVM::LLVMFuncOp body, Dropouts &dropouts) {
  OpBuilder builder(kernel.getContext());
  Block *entry = kernel.addEntryBlock(builder);
  builder.setInsertionPointToEnd(entry);
  SmallVector<Value> arguments(entry->getArguments());
  for (DropoutMaskOp dropout : dropouts)
    arguments.push_back(constantOf(builder, kernel.getLoc(), builder.getI32Type(), static_cast<int32_t>(dropout.getStream())));
  LLVM::CallOp::create(builder, kernel.getLoc(), body, arguments);
  LLVM::ReturnOp::create(builder, kernel.getLoc(), ValueRange());
}
} // namespace

LogicalResult emitKernel(const KernelSpec &spec, ModuleOp module, const CpuTarget &target) {
  FailureOr<Walk> walk = planWalk(spec);
  if (failed(walk))
    return failure();
  Dropouts dropouts;
  walk->op.getBody().walk([&](DropoutMaskOp dropout) { dropouts.push_back(dropout); });
  LLVM::LLVMFuncOp kernel = addFunction(module, walk->op.getLoc(), spec.symbol, 0), body = kernel;
  if (!dropouts.empty()) {
    body = addFunction(module, walk->op.getLoc(), spec.symbol + ".body", dropouts.size());
    body.setLinkage(LLVM::Linkage::Internal);
    addCall(kernel, body, dropouts);
  }
  KernelBuilder(*walk, target).build(body, dropouts);
  return success();
}

} // namespace meshwork::codegen
