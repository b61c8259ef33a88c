// Sums and maxima across the threads of a block: lanes of a vector, then a
// warp's shuffles, then shared memory. Their order is that of thread numbers,
// so equal inputs give equal bits.
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/codegen/gpu/BlockKernel.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;

Value BlockKernel::combineLanes(Value vector, bool isMax) {
  auto type = dyn_cast<VectorType>(vector.getType());
  if (!type)
    return vector;
  OpBuilder &b = body.builder();
  SmallVector<Value> parts;
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    parts.push_back(vector::ExtractOp::create(b, body.loc(), vector, i));
  while (parts.size() > 1) {
    size_t half = parts.size() / 2;
    SmallVector<Value> sums;
    for (size_t i = 0; i < half; ++i)
      sums.push_back(body.combine(b, isMax, parts[i], parts[i + half]));
    if (parts.size() % 2)
      sums.push_back(parts.back());
    parts = std::move(sums);
  }
  return parts.front();
}

/// Both sides of an exchange add the same two numbers, so all lanes end equal.
void BlockKernel::shuffle(MutableArrayRef<Value> values,
                          ArrayRef<ReduceOp> reductions, int64_t threads) {
  OpBuilder &b = body.builder();
  for (int64_t offset = threads / 2; offset > 0; offset /= 2)
    for (auto [value, reduce] : llvm::zip_equal(values, reductions)) {
      Value other = gpu::ShuffleOp::create(b, body.loc(), value,
                                           static_cast<int32_t>(offset), 32,
                                           gpu::ShuffleMode::XOR)
                        .getShuffleResult();
      value = body.combine(b, isMax(reduce), value, other);
    }
}

Value BlockKernel::sharedAddress(Value index) {
  OpBuilder &b = body.builder();
  Value wide =
      index.getType() == b.getI64Type()
          ? index
          : arith::ExtUIOp::create(b, body.loc(), b.getI64Type(), index)
                .getResult();
  return LLVM::GEPOp::create(b, body.loc(), shared.getType(), b.getF32Type(),
                             shared, LLVM::GEPArg(wide));
}

/// Of the cluster's threads; those of a larger launch do not come here.
void BlockKernel::barrier() {
  OpBuilder &b = body.builder();
  if (launchedThreads == geometry.block()) {
    gpu::BarrierOp::create(b, body.loc());
    return;
  }
  NVVM::BarrierOp::create(b, body.loc(), TypeRange(), body.wordOf(0),
                          body.wordOf(static_cast<int32_t>(geometry.block())),
                          {}, Value());
}

/// Of sums that need nothing of each other, the threads meet once.
void BlockKernel::reduceThreads(MutableArrayRef<Value> values,
                                ArrayRef<ReduceOp> reductions,
                                int64_t threads) {
  shuffle(values, reductions, std::min<int64_t>(threads, 32));
  int64_t warps = threads / 32;
  if (warps <= 1 || values.empty())
    return;
  OpBuilder &b = body.builder();
  Values slots;
  for (size_t i = 0; i < values.size(); ++i, usedSlots += warps)
    slots.push_back(turn ? plus(turn, body.number(usedSlots))
                         : body.number(usedSlots));
  Value warp = div(thread, 32);
  Values to = llvm::map_to_vector(
      slots, [&](Value slot) { return sharedAddress(plus(slot, warp)); });
  scf::IfOp::create(b, body.loc(), isZero(lane),
                    [&](OpBuilder &inner, Location loc) {
                      for (auto [value, address] : llvm::zip_equal(values, to))
                        LLVM::StoreOp::create(inner, loc, value, address, 4);
                      scf::YieldOp::create(inner, loc);
                    });
  barrier();
  // As many lanes as there are warps add them up, and so do their neighbours.
  int64_t group = llvm::PowerOf2Ceil(warps);
  Value part = rem(lane, group), exists = isLess(part, body.number(warps));
  part = arith::SelectOp::create(b, body.loc(), exists, part, body.number(0));
  for (auto [value, slot, reduce] :
       llvm::zip_equal(values, slots, reductions)) {
    value = LLVM::LoadOp::create(b, body.loc(), b.getF32Type(),
                                 sharedAddress(plus(slot, part)), 4);
    value = arith::SelectOp::create(b, body.loc(), exists, value,
                                    body.identity(isMax(reduce)));
  }
  shuffle(values, reductions, group);
}

/// What adds nothing to each chunk result; results that are none have an
/// unused zero.
void BlockKernel::initChunk() {
  carried.clear();
  for (unsigned i = 0; i < walk.results.size(); ++i)
    for (int64_t k = 0; k < geometry.vectors; ++k) {
      bool isChunked = walk.isChunked(i);
      Value start = body.identity(isChunked && isMax(reductionOf(i)));
      carried.push_back(isChunked && !isChunkScalar(walk, i) &&
                                !isSummedInMemory(i)
                            ? body.spread(body.builder(), start)
                            : start);
    }
}

void BlockKernel::storeChunk() {
  body.bindRow(walk.chunkKey, blockRow);
  if (shared)
    barrier(); // what follows takes memory that rows' sums used
  for (unsigned i = 0; i < walk.results.size(); ++i) {
    if (!walk.isChunked(i) || isSummedInMemory(i))
      continue;
    ArrayRef<Value> sums =
        ArrayRef(carried).slice(i * geometry.vectors, geometry.vectors);
    if (!isChunkScalar(walk, i)) {
      storeChunkColumns(i, sums);
      continue;
    }
    // A block of one row of one column has threads beside it with the same.
    Value total = sums.front();
    reduceThreads(total, reductionOf(i),
                  geometry.threadsPerRow * geometry.rowsAtOnce);
    Value first = isZero(thread);
    body.storeResult(
        i, total,
        geometry.columnBlocks > 1 ? both(first, isZero(blockColumn)) : first);
    if (shared)
      barrier(); // a result that follows takes the same memory
  }
}

/// Rows at once are added up in their order by the threads of the first.
void BlockKernel::storeChunkColumns(unsigned result, ArrayRef<Value> sums) {
  OpBuilder &b = body.builder();
  int64_t perRow = geometry.vectorsPerBlock() * geometry.width;
  auto addressOf = [&](const Place &place, Value row) {
    Value vector =
        plus(ofRowThread, body.number(place.number * geometry.threadsPerRow));
    return sharedAddress(plus(mul(row, perRow), mul(vector, geometry.width)));
  };
  unsigned alignment =
      static_cast<unsigned>(std::min<int64_t>(16, geometry.width * 4));
  if (geometry.rowsAtOnce > 1) {
    for (Place &place : places)
      LLVM::StoreOp::create(b, body.loc(), sums[place.number],
                            addressOf(place, rowOfBlock), alignment);
    barrier();
  }
  for (Place &place : places) {
    Value sum = sums[place.number];
    for (int64_t row = 1; row < geometry.rowsAtOnce; ++row)
      sum = body.combine(
          b, isMax(reductionOf(result)), sum,
          LLVM::LoadOp::create(b, body.loc(), sum.getType(),
                               addressOf(place, body.number(row)), alignment));
    body.setPlace(&place);
    body.storeResult(result, sum,
                     geometry.rowsAtOnce > 1 ? isZero(rowOfBlock) : Value());
    body.setPlace(nullptr);
  }
  if (geometry.rowsAtOnce > 1)
    barrier();
}

} // namespace meshwork::codegen
