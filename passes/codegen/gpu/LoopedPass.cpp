// A pass over a row that no block holds in registers.
#include "passes/codegen/gpu/BlockKernel.h"
#include "passes/codegen/gpu/Shortcuts.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;

/// A pass over vectors that are loaded for it. A thread may have one that needs
/// a closer look, after the others, which then need none.
void BlockKernel::emitLoopedPass(unsigned pass) {
  SmallVector<ReduceOp> reductions = takePicks(pass);
  bool stores = pass == walk.storePass;
  Values sums;
  for (ReduceOp reduce : reductions)
    sums.push_back(startOf(reduce));
  // A column's sum over rows is always the same thread's.
  Share share = shareOf(stores && reductions.empty() && !sumsInMemory());
  auto take = [&](Place place, ValueRange before) {
    body.setPlace(&place);
    Values next = addPlace(reductions, before);
    if (stores)
      storeColumns();
    body.setPlace(nullptr);
    return next;
  };
  sums = body.loop(ofPlace, share.lower, share.upper, geometry.threadsPerRow,
                   sums, [&](Value vector, ValueRange before) {
                     Place place = placeOf(vector, true, /*isWhole=*/true);
                     place.hasNoMatch = share.match != nullptr;
                     if (share.match)
                       place.active = op([&](OpBuilder &b, Location loc) {
                         return arith::CmpIOp::create(b, loc,
                                                      arith::CmpIPredicate::ne,
                                                      vector, share.match);
                       });
                     return take(place, before);
                   });
  if (share.closer) {
    Value exists =
        isLess(share.closer, body.number(geometry.vectorsOf(walk.numCols)));
    sums = body.onlyIf(ofPlace, exists, sums,
                       [&] { return take(placeOf(share.closer, true), sums); });
  }
  Values totals;
  SmallVector<ReduceOp> summed;
  for (auto [index, sum] : llvm::enumerate(sums)) {
    ReduceOp reduce = reductions[index];
    if (isOfBf16(reduce))
      sum = op([&](OpBuilder &b, Location loc) {
        return arith::ExtFOp::create(
            b, loc, cast<VectorType>(sum.getType()).clone(b.getF32Type()), sum);
      });
    Value total = combineLanes(sum, isMax(reduce));
    if (walk.formOf(reduce) == ReduceForm::columns) {
      totals.push_back(total);
      summed.push_back(reduce);
      continue;
    }
    for (unsigned i = 0; i < walk.results.size(); ++i)
      if (walk.isChunked(i) && reductionOf(i) == reduce)
        carried[i * geometry.vectors] =
            body.combine(body.builder(), isMax(reduce),
                         carried[i * geometry.vectors], total);
  }
  reduceThreads(totals, summed, geometry.threadsPerRow);
  for (auto [reduce, total] : llvm::zip_equal(summed, totals))
    body.define(reduce, total);
}

/// Ends of a shifted row, which hold columns that are not its own, and where a
/// pass only stores, the vector with the column that the cluster compares with.
/// Each has a thread of the last warp, which comes to it when the first warps
/// take their last ones.
BlockKernel::Share BlockKernel::shareOf(bool storesAlone) {
  int64_t threads = geometry.threadsPerRow;
  Value none = body.number(geometry.vectorsOf(walk.numCols));
  Share share{ofRowThread, none, {}, {}};
  auto choose = [&](Value condition, Value a, Value c) {
    return op([&](OpBuilder &b, Location loc) {
      return arith::SelectOp::create(b, loc, condition, a, c);
    });
  };
  auto compare = [&](arith::CmpIPredicate how, Value a, Value c) {
    return op([&](OpBuilder &b, Location loc) {
      return arith::CmpIOp::create(b, loc, how, a, c);
    });
  };
  auto lookCloser = [&](int64_t thread, Value vector) {
    Value isThread =
        compare(arith::CmpIPredicate::eq, ofRowThread, body.number(thread));
    share.closer = choose(isThread, vector, share.closer ? share.closer : none);
  };
  bool isMisaligned = geometry.shifted && body.isEverMisaligned();
  if (geometry.shifted) {
    share.upper =
        isMisaligned
            ? div(plus(shift, body.number(walk.numCols - 1)), geometry.width)
            : body.number((walk.numCols - 1) / geometry.width);
    lookCloser(threads - 1, share.upper);
  }
  if (isMisaligned) {
    share.lower =
        choose(isZero(ofRowThread), body.number(threads), ofRowThread);
    lookCloser(threads - 2, body.number(0));
  }
  ArrayRef<ColumnMatch> matches = body.columnMatches();
  if (!storesAlone || matches.empty() ||
      !llvm::all_of(matches, [&](const ColumnMatch &match) {
        return areAlike(match, matches.front());
      }))
    return share;
  Value column = body.matchingColumn(matches.front());
  Value exists = compare(arith::CmpIPredicate::ult, column,
                         body.number(walk.numCols)); // nor is it negative
  share.match = choose(
      exists, div(shift ? plus(column, shift) : column, geometry.width), none);
  Value isWhole = exists; // others have a closer look anyway
  if (geometry.shifted)
    isWhole = both(isWhole, isLess(share.match, share.upper));
  if (isMisaligned)
    isWhole = both(isWhole, isLess(body.number(0), share.match));
  lookCloser(threads - 3, choose(isWhole, share.match, none));
  return share;
}

bool BlockKernel::isOfBf16(ReduceOp reduce) {
  std::optional<unsigned> input = inputOf(reduce.getInput());
  return isMax(reduce) && input && body.isVectorOfBf16(*input);
}

Value BlockKernel::startOf(ReduceOp reduce) {
  if (!isOfBf16(reduce))
    return body.spread(body.builder(), body.identity(isMax(reduce)));
  return op([&](OpBuilder &b, Location loc) {
    auto start = FloatAttr::get(b.getBF16Type(), body.start(true));
    return body.spread(b, arith::ConstantOp::create(b, loc, start));
  });
}

/// Of bf16 as they are loaded, a machine's maximum takes two at once.
BlockKernel::Values BlockKernel::addPlace(ArrayRef<ReduceOp> reductions,
                                          ValueRange before) {
  Values next;
  for (auto [index, sum] : llvm::enumerate(before)) {
    ReduceOp reduce = reductions[index];
    Value input = reduce.getInput();
    Value part = isOfBf16(reduce)
                     ? body.bf16At(*inputOf(input))
                     : body.spread(body.builder(), body.eval(input).value);
    part = onlyExisting(part, startOf(reduce));
    next.push_back(body.combine(body.builder(), isMax(reduce), sum, part));
  }
  return next;
}

/// A term is loaded where others that are summed by all threads have a barrier
/// before anything is stored.
SmallVector<ReduceOp> BlockKernel::takePicks(unsigned pass) {
  SmallVector<ReduceOp> others, picks;
  for (ReduceOp reduce : reductionsOf(pass))
    (pickOf(reduce, walk) ? picks : others).push_back(reduce);
  if (pass == walk.storePass || llvm::none_of(others, [&](ReduceOp reduce) {
        return walk.formOf(reduce) == ReduceForm::columns;
      }))
    return SmallVector<ReduceOp>(reductionsOf(pass));
  for (ReduceOp reduce : picks)
    body.define(reduce, body.pick(*pickOf(reduce, walk)));
  return others;
}

} // namespace meshwork::codegen
