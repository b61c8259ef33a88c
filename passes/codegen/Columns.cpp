// Passes over the columns of a row.
#include <numeric>

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/codegen/KernelBuilder.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;

static bool isMax(ReduceOp reduce) {
  return reduce.getKind() == Reduction::max;
}

ArrayRef<ReduceOp> KernelBuilder::reductionsOf(unsigned pass) {
  return pass < walk.passes.size() ? ArrayRef<ReduceOp>(walk.passes[pass])
                                   : ArrayRef<ReduceOp>();
}

/// Lanes decide the order of a row's sums, so where there are some the width
/// depends on the columns alone: a norm has the same bits in every kernel,
/// whatever its operand costs there.
int64_t KernelBuilder::widthOf(unsigned pass) {
  SmallVector<Value> roots;
  if (!reductionsOf(pass).empty())
    return chooseWidth(walk, target, roots);
  for (auto [access, value] : llvm::zip_equal(walk.results, yields))
    if (pass == walk.storePass && walk.hasCols(access))
      roots.push_back(value);
  return chooseWidth(walk, target, roots);
}

void KernelBuilder::emitPass(unsigned pass) {
  Values sums;
  width = widthOf(pass);
  body.beginPass(pass);
  body.setPlace({width, width, 0});
  for (ReduceOp reduce : reductionsOf(pass))
    sums.push_back(
        body.identity(body.builder(), isMax(reduce), !walk.cols.empty()));
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

Value KernelBuilder::combineLanes(ReduceOp reduce, Value lanes) {
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

BodyEmitter::Values KernelBuilder::emitColumns(unsigned pass, unsigned level,
                                               Values sums) {
  if (walk.cols.empty())
    return emitBody(pass, sums);
  const LoopDim &dim = walk.cols[level];
  if (level + 1 < walk.cols.size())
    return body.loop(body.number(0), body.number(dim.size), 1, sums,
                     [&](Value position, ValueRange carried) {
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

BodyEmitter::Values KernelBuilder::emitSegment(unsigned pass, int64_t lower,
                                               int64_t upper, Values sums) {
  int64_t steps = (upper - lower) / width, tail = lower + steps * width;
  body.setPlace({width, width, lower});
  if (steps == 1)
    sums = emitAt(pass, lower, sums);
  if (steps > 1)
    sums = body.loop(body.number(lower), body.number(tail), width, sums,
                     [&](Value position, ValueRange carried) {
                       body.bind(walk.vectorKey(), position);
                       return emitBody(pass, Values(carried));
                     });
  if (tail == upper)
    return sums;
  body.setPlace({width, upper - tail, lower});
  return emitAt(pass, tail, sums);
}

BodyEmitter::Values KernelBuilder::emitAt(unsigned pass, int64_t column,
                                          Values sums) {
  body.open();
  body.bind(walk.vectorKey(), body.number(column));
  sums = emitBody(pass, sums);
  body.close();
  return sums;
}

void KernelBuilder::emitColumnRange(Value lower, Value upper) {
  width = widthOf(walk.storePass);
  int64_t whole = walk.numCols / width * width;
  body.setPlace({width, width, 0});
  body.loop(lower, least(upper, whole), width, {},
            [&](Value position, ValueRange) {
              body.bind(walk.vectorKey(), position);
              return emitBody(walk.storePass, {});
            });
  if (whole == walk.numCols)
    return;
  // At most one turn: the tail, when the range reaches the end.
  Value first = arith::MaxSIOp::create(body.builder(), body.loc(), lower,
                                       body.number(whole));
  body.setPlace({width, walk.numCols - whole, 0});
  body.loop(first, upper, width, {}, [&](Value, ValueRange) {
    body.bind(walk.vectorKey(), body.number(whole));
    return emitBody(walk.storePass, {});
  });
}

BodyEmitter::Values KernelBuilder::emitBody(unsigned pass, Values sums) {
  for (auto [i, sum] : llvm::enumerate(sums)) {
    ReduceOp reduce = reductionsOf(pass)[i];
    sum = body.combine(body.builder(), isMax(reduce), sum, reducedPart(reduce));
  }
  if (pass == walk.storePass)
    storeColumns();
  return sums;
}

Value KernelBuilder::reducedPart(ReduceOp reduce) {
  Value part = body.eval(reduce.getInput()).value;
  if (walk.cols.empty())
    return part;
  part = body.splat(part);
  if (Value mask = body.activeMask(body.builder()))
    part = arith::SelectOp::create(
        body.builder(), body.loc(), mask, part,
        body.identity(body.builder(), isMax(reduce), true));
  return part;
}

void KernelBuilder::storeColumns() {
  SmallVector<std::pair<unsigned, Value>> stores;
  for (unsigned i = 0; i < walk.results.size(); ++i)
    if (walk.hasCols(walk.results[i]))
      stores.push_back({i, resultValue(i)});
  for (auto [i, value] : stores)
    body.store(walk.results[i], value);
}

} // namespace meshwork::codegen
