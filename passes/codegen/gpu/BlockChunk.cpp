// A block's chunk of rows: what is summed over rows.
#include "passes/codegen/gpu/BlockKernel.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;

void BlockKernel::emitChunk() {
  auto wide = [&](Value number) {
    return op([&](OpBuilder &b, Location loc) -> Value {
      if (geometry.countsFar)
        return number;
      return arith::ExtUIOp::create(b, loc, b.getI64Type(), number);
    });
  };
  auto share = [&](Value chunk) { // first row of a chunk: c R / C
    return op([&](OpBuilder &b, Location loc) -> Value {
      auto constant = [&](int64_t n) {
        return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(n));
      };
      Value rows =
          arith::MulIOp::create(b, loc, wide(chunk), constant(walk.numRows));
      Value first = arith::DivUIOp::create(b, loc, rows, constant(walk.items));
      if (geometry.countsFar)
        return first;
      return arith::TruncIOp::create(b, loc, b.getI32Type(), first);
    });
  };
  Value lower = share(blockRow), upper = share(plus(blockRow, body.number(1)));
  makePlaces();
  clearMemory();
  initChunk();
  carried = emitRows(lower, upper);
  rowExists = {};
  storeChunk();
}

/// A row's loads, sums and barriers wait for each other, so the next row is
/// loaded before this one is computed.
BlockKernel::Values BlockKernel::emitRows(Value lower, Value upper) {
  size_t sums = carried.size();
  if (geometry.ahead)
    llvm::append_range(carried, loadAhead(plus(lower, rowOfBlock), upper));
  Values ended = body.loop(
      ofRow, lower, upper, geometry.rowsAtOnce, carried,
      [&](Value row, ValueRange before) -> Values {
        carried.assign(before.begin(), before.begin() + sums);
        Value own = plus(row, rowOfBlock);
        Values next;
        if (geometry.ahead)
          next = loadAhead(plus(own, body.number(geometry.rowsAtOnce)), upper);
        if (geometry.floatsOfTurn)
          turn = mul(rem(row, 2), geometry.floatsOfTurn);
        bindRow(own, upper);
        if (sumsInMemory())
          body.bindRow(walk.chunkKey, blockRow);
        if (geometry.ahead)
          body.giveRow(before.drop_front(sums));
        emitRow();
        addRowToChunk();
        storeRowResults();
        usedSlots = 0;
        body.unbindRow();
        Values all = carried;
        llvm::append_range(all, next);
        return all;
      });
  turn = {};
  ended.resize(sums);
  return ended;
}

BlockKernel::Values BlockKernel::loadAhead(Value row, Value upper) {
  OpBuilder &b = body.builder();
  Value last = arith::SubIOp::create(b, body.loc(), upper, body.number(1));
  Value there = arith::MinSIOp::create(b, body.loc(), row, last);
  bindRowPositions(there);
  loadHeld();
  body.unbindRow();
  return body.takeRow();
}

bool BlockKernel::isSummedInMemory(unsigned result) const {
  return geometry.loops && walk.isChunked(result) &&
         !isChunkScalar(walk, result);
}

bool BlockKernel::sumsInMemory() const {
  return llvm::any_of(
      llvm::seq<unsigned>(0, walk.results.size()),
      [&](unsigned result) { return isSummedInMemory(result); });
}

/// A thread clears the vectors that it adds to, so that nobody waits.
void BlockKernel::clearMemory() {
  if (!sumsInMemory())
    return;
  body.bindRow(walk.chunkKey, blockRow);
  body.loop(ofPlace, ofRowThread, body.number(geometry.vectorsOf(walk.numCols)),
            geometry.threadsPerRow, {},
            [&](Value vector, ValueRange) -> Values {
              Place place = placeOf(vector, true);
              body.setPlace(&place);
              for (unsigned i = 0; i < walk.results.size(); ++i)
                if (isSummedInMemory(i))
                  body.storeResult(i, body.identity(isMax(reductionOf(i))), {});
              body.setPlace(nullptr);
              return {};
            });
  body.unbindRow();
}

/// What the current row makes of the sums at the current place.
Value BlockKernel::sumWithMemory(unsigned result) {
  ReduceOp reduce = reductionOf(result);
  Value part = body.spread(body.builder(), body.eval(reduce.getInput()).value);
  return body.combine(body.builder(), isMax(reduce), body.loadResult(result),
                      part);
}

void BlockKernel::addRowToChunk() {
  for (unsigned i = 0; i < walk.results.size(); ++i) {
    if (!walk.isChunked(i) || isSummedInMemory(i))
      continue;
    bool takesMax = isMax(reductionOf(i));
    auto onlyIf = [&](Value condition, Value part) {
      if (!condition)
        return part;
      return op([&](OpBuilder &b, Location loc) -> Value {
        Value none = body.identity(takesMax);
        if (isa<VectorType>(part.getType()))
          none = body.spread(b, none);
        return arith::SelectOp::create(b, loc, condition, part, none);
      });
    };
    auto take = [&](Value &sum, Value part) {
      sum = body.combine(body.builder(), takesMax, sum, part);
    };
    Value input = reductionOf(i).getInput();
    bool alongRow =
        llvm::any_of(reductionOf(i).getDims().getNames(), [&](StringAttr name) {
          return FusedOp(walk.op).getCols().find(name) >= 0;
        });
    if (geometry.loops && alongRow)
      continue; // done by the pass
    bool columns = !isChunkScalar(walk, i);
    if (!columns &&
        (!alongRow ||
         walk.cols.empty())) { // a value per row, of one of its threads
      Value first = geometry.threadsPerRow > 1 ? isZero(ofRowThread) : Value();
      take(carried[i * geometry.vectors],
           onlyIf(both(first, rowExists), body.eval(input).value));
      continue;
    }
    for (Place &place : places) {
      body.setPlace(&place);
      Value part = body.spread(body.builder(), body.eval(input).value);
      if (!columns)
        part = onlyExisting(part, body.identity(takesMax));
      part = onlyIf(rowExists, part);
      take(carried[i * geometry.vectors + (columns ? place.number : 0)],
           columns ? part : combineLanes(part, takesMax));
    }
    body.setPlace(nullptr);
  }
}

} // namespace meshwork::codegen
