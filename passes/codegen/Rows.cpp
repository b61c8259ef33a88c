// Items and rows of a kernel, and the sums over rows in a chunk's memory.
#include "passes/codegen/KernelBuilder.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;

KernelBuilder::KernelBuilder(const Walk &walk, const CpuTarget &target)
    : walk(walk), target(target), body(walk, target),
      segments(segmentEnds(walk)) {
  auto yield =
      cast<YieldOp>(FusedOp(walk.op).getBody().front().getTerminator());
  yields.append(yield.operand_begin(), yield.operand_end());
}

void KernelBuilder::build(LLVM::LLVMFuncOp function,
                          ArrayRef<DrawOpInterface> draws) {
  OpBuilder builder(function.getContext());
  Block *entry = function.addEntryBlock(builder);
  for (auto [draw, stream] :
       llvm::zip_equal(draws, entry->getArguments().drop_front(3)))
    body.setStream(draw, stream);
  body.begin(OpBuilder::atBlockEnd(entry), entry->getArgument(0),
             scratchValues(walk), scratchAccess(walk));
  begin = entry->getArgument(1);
  end = entry->getArgument(2);
  emitItems();
  LLVM::ReturnOp::create(body.builder(), body.loc(), ValueRange());
}

Value KernelBuilder::mul(Value a, int64_t b) {
  return arith::MulIOp::create(body.builder(), body.loc(), a, body.number(b));
}

Value KernelBuilder::div(Value a, int64_t b) {
  return arith::DivUIOp::create(body.builder(), body.loc(), a, body.number(b));
}

Value KernelBuilder::least(Value a, int64_t b) {
  return arith::MinSIOp::create(body.builder(), body.loc(), a, body.number(b));
}

void KernelBuilder::emitItems() {
  switch (walk.split) {
  case Split::chunks:
    body.loop(begin, end, 1, {}, [&](Value item, ValueRange) -> Values {
      body.bind(walk.chunkKey, item);
      clearChunks();
      Value next = arith::AddIOp::create(body.builder(), body.loc(), item,
                                         body.number(1));
      emitRows(share(item), share(next));
      return {};
    });
    return;
  case Split::rowShares:
    return emitRows(share(begin), share(end));
  case Split::rowBlocks:
    return emitRows(mul(begin, walk.rowsPerItem),
                    least(mul(end, walk.rowsPerItem), walk.numRows));
  case Split::columnBlocks:
    emitColumnRange(mul(begin, columnsPerItem),
                    least(mul(end, columnsPerItem), walk.numCols));
  }
}

void KernelBuilder::emitRows(Value lower, Value upper) {
  body.loop(lower, upper, 1, {}, [&](Value row, ValueRange) -> Values {
    bindRow(row);
    unsigned passes = std::max<unsigned>(
        walk.passes.size(), storesColumns() ? walk.storePass + 1 : 0);
    for (unsigned pass = 0; pass < passes; ++pass)
      emitPass(pass);
    storeRowResults();
    return {};
  });
}

void KernelBuilder::bindRow(Value row) {
  for (auto [i, dim] : llvm::enumerate(llvm::reverse(walk.rows))) {
    if (i + 1 == walk.rows.size())
      return body.bind(dim.key, row);
    body.bind(dim.key, arith::RemUIOp::create(body.builder(), body.loc(), row,
                                              body.number(dim.size)));
    row = div(row, dim.size);
  }
}

bool KernelBuilder::storesColumns() {
  return llvm::any_of(
      walk.results, [&](const Access &access) { return walk.hasCols(access); });
}

void KernelBuilder::storeRowResults() {
  SmallVector<std::pair<unsigned, Value>> stores;
  for (unsigned i = 0; i < walk.results.size(); ++i)
    if (!walk.hasCols(walk.results[i]))
      stores.push_back({i, resultValue(i)});
  for (auto [i, value] : stores)
    body.store(walk.results[i], value);
}

Value KernelBuilder::resultValue(unsigned i) {
  if (!walk.isChunked(i))
    return body.eval(yields[i]).value;
  auto reduce = yields[i].getDefiningOp<ReduceOp>();
  Value part = rowSums.lookup(reduce) ? rowSums.lookup(reduce)
                                      : body.eval(reduce.getInput()).value;
  Value sum = body.loadWritten(walk.results[i]);
  if (isa<VectorType>(sum.getType()))
    part = body.splat(part);
  return body.combine(body.builder(), reduce.getKind() == Reduction::max, sum,
                      part);
}

void KernelBuilder::clearChunks() {
  SmallVector<LoopDim> dims(walk.rows);
  dims.append(walk.cols);
  width = chooseWidth(walk, target, {});
  for (unsigned i = 0; i < walk.results.size(); ++i)
    if (walk.isChunked(i))
      clear(walk.results[i], dims,
            yields[i].getDefiningOp<ReduceOp>().getKind() == Reduction::max);
}

void KernelBuilder::clear(const Access &access, ArrayRef<LoopDim> dims,
                          bool isMax) {
  while (!dims.empty() && !access.along(dims.front().key))
    dims = dims.drop_front();
  if (dims.empty()) {
    body.store(access, body.identity(body.builder(), isMax, false));
    return;
  }
  const LoopDim &dim = dims.front();
  bool isVector = dim.key == walk.vectorKey();
  int64_t step = isVector ? width : 1, whole = dim.size / step * step;
  auto at = [&](Value position) {
    body.bind(dim.key, position);
    clear(access, dims.drop_front(), isMax);
  };
  body.setPlace({width, width, 0});
  body.loop(body.number(0), body.number(whole), step, {},
            [&](Value position, ValueRange) -> Values {
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

} // namespace meshwork::codegen
