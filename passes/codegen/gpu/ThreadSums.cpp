// Sums of ThreadBody: over chunks, and over what is not walked.
#include "passes/codegen/gpu/ThreadBody.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/codegen/BodyEmitter.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;

Emitted ThreadBody::evalVertical(ReduceOp reduce) {
  unsigned scope = scopeOf(reduce.getInput());
  auto input = tensorType(reduce.getInput());
  SmallVector<StringAttr> dims;
  for (auto [name, size] :
       llvm::zip_equal(dimsOf(input).getNames(), input.getShape()))
    if (reduce.getDims().find(name) >= 0 && size != 1)
      dims.push_back(name);
  SmallVector<OpBuilder, 4> before(builders);
  builders.assign(4, before[scope]);
  bool isWide = isVector() && (scope & ofPlace);
  Value start = identity(reduce.getKind() == Reduction::max);
  Value sum =
      sumVertical(reduce, dims, isWide ? spread(builders[scope], start) : start,
                  isWide, geometry.verticalParts);
  // A single value is no thread's part: each has all of it.
  if (geometry.verticalParts > 1 && !dims.empty())
    sum = sumOfParts(builders[scope], sum, reduce.getKind() == Reduction::max);
  before[scope] = builders[scope];
  builders = before;
  return {sum, scope};
}

/// Up to eight loads are under way before the first is added.
Value ThreadBody::sumVertical(ReduceOp reduce, ArrayRef<StringAttr> dims,
                              Value carried, bool wide, int64_t parts) {
  if (dims.empty()) {
    Value part = eval(reduce.getInput()).value;
    return combine(builders[ofBoth], reduce.getKind() == Reduction::max,
                   carried, wide ? spread(builders[ofBoth], part) : part);
  }
  auto input = tensorType(reduce.getInput());
  int64_t count = llvm::divideCeil(
              input.getDimSize(dimsOf(input).find(dims.front())), parts),
          unrolled = 1;
  // Of hundreds of sums (a norm) a loop keeps all from being loaded first, into
  // more registers than there are.
  bool hasMany = llvm::range_size(reduce->getBlock()->getOps<ReduceOp>()) > 16;
  int64_t most = hasMany && count <= 8 ? 4 : 8;
  while (dims.size() == 1 && unrolled < most && count % (unrolled * 2) == 0)
    unrolled *= 2;
  if (count == unrolled && !(hasMany && count > 1))
    return sumPositions(reduce, dims, carried, wide, number(0), unrolled,
                        parts);
  auto loop =
      scf::ForOp::create(builders[ofBoth], loc(), number(0), number(count),
                         number(unrolled), ValueRange(carried));
  SmallVector<OpBuilder, 4> before(builders);
  builders.assign(4, OpBuilder::atBlockEnd(loop.getBody()));
  carried = sumPositions(reduce, dims, loop.getRegionIterArg(0), wide,
                         loop.getInductionVar(), unrolled, parts);
  scf::YieldOp::create(builders[ofBoth], loc(), carried);
  builders = before;
  return loop.getResult(0);
}

Value ThreadBody::sumPositions(ReduceOp reduce, ArrayRef<StringAttr> dims,
                               Value carried, bool wide, Value first,
                               int64_t count, int64_t parts) {
  auto knownValues = values;
  auto knownLoads = loads;
  auto input = tensorType(reduce.getInput());
  int64_t size = input.getDimSize(dimsOf(input).find(dims.front()));
  bool isMax = reduce.getKind() == Reduction::max;
  Values found;
  for (int64_t i = 0; i < count; ++i) {
    OpBuilder &b = builders[ofBoth];
    Value position =
        i ? arith::AddIOp::create(b, loc(), first, number(i)).getResult()
          : first;
    if (parts > 1) {
      position = arith::MulIOp::create(b, loc(), position, number(parts));
      position = arith::AddIOp::create(b, loc(), position, verticalPart);
    }
    Value exists; // null: always
    if (size % parts) {
      exists = arith::CmpIOp::create(b, loc(), arith::CmpIPredicate::slt,
                                     position, number(size));
      position = arith::MinSIOp::create(b, loc(), position, number(size - 1));
    }
    verticalPositions.push_back({dims.front(), position});
    if (dims.size() > 1)
      carried =
          sumVertical(reduce, dims.drop_front(), carried, wide, /*parts=*/1);
    else
      found.push_back(orNothing(exists, eval(reduce.getInput()).value, isMax));
    verticalPositions.pop_back();
    values = knownValues;
    loads = knownLoads;
  }
  OpBuilder &b = builders[ofBoth];
  for (Value part : found)
    carried = combine(b, isMax, carried, wide ? spread(b, part) : part);
  return carried;
}

/// `part` where it exists, else what changes no sum.
Value ThreadBody::orNothing(Value exists, Value part, bool isMax) {
  if (!exists)
    return part;
  OpBuilder &b = builders[ofBoth];
  Value nothing = identity(isMax);
  return arith::SelectOp::create(
      b, loc(), exists, part,
      isa<VectorType>(part.getType()) ? spread(b, nothing) : nothing);
}

/// Both sides of an exchange add the same two numbers, so all end equal.
Value ThreadBody::sumOfParts(OpBuilder &b, Value sum, bool isMax) {
  auto exchange = [&](Value value, int64_t offset) -> Value {
    return gpu::ShuffleOp::create(b, loc(), value, static_cast<int32_t>(offset),
                                  32, gpu::ShuffleMode::XOR)
        .getShuffleResult();
  };
  for (int64_t offset = geometry.verticalParts / 2; offset > 0; offset /= 2) {
    auto type = dyn_cast<VectorType>(sum.getType());
    if (!type) {
      sum = combine(b, isMax, sum, exchange(sum, offset));
      continue;
    }
    Value others = sum;
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      others = vector::InsertOp::create(
          b, loc(),
          exchange(vector::ExtractOp::create(b, loc(), sum, i), offset), others,
          i);
    sum = combine(b, isMax, sum, others);
  }
  return sum;
}

/// A NaN does not replace what was found so far, as on the CPU.
Value ThreadBody::combine(OpBuilder &b, bool isMax, Value a, Value c) {
  if (isMax)
    return arith::MaxNumFOp::create(b, loc(), a, c);
  return arith::AddFOp::create(b, loc(), a, c);
}

Value ThreadBody::add(Value a, Value c, unsigned scope) {
  return arith::AddFOp::create(builders[scope], loc(), a, c);
}

} // namespace meshwork::codegen
