// Results that lie along rows: a thread has a vector of each row of its tile,
// and stores a vector of each column, made of the rows' elements.
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/codegen/BodyEmitter.h"
#include "passes/codegen/gpu/ThreadBody.h"

using namespace mlir;
namespace meshwork::codegen {

Value ThreadBody::gather(OpBuilder &b, ArrayRef<Value> vectors, int64_t lane) {
  auto type = cast<VectorType>(vectors.front().getType());
  auto count = static_cast<int64_t>(vectors.size());
  Value all = LLVM::UndefOp::create(
      b, loc(), VectorType::get({count}, type.getElementType()));
  for (auto [i, vector] : llvm::enumerate(vectors))
    all = vector::InsertOp::create(
        b, loc(), vector::ExtractOp::create(b, loc(), vector, lane), all, i);
  return all;
}

void ThreadBody::storeTile(unsigned i, ArrayRef<Value> rows, Value condition) {
  unsigned number = walk.inputs.size() + i;
  const Access &to = access(number);
  OpBuilder &b = builders[ofBoth];
  SmallVector<Value> spreadRows, stored;
  for (Value row : rows)
    spreadRows.push_back(spread(b, row));
  for (int64_t lane = 0; lane < geometry.width; ++lane)
    stored.push_back(
        toStorage(b, gather(b, spreadRows, lane), to.type.getElementType()));
  Value first = address(number, 0).value;
  Type storage = storageOf(to.type);
  int64_t step = to.along(walk.vectorKey()),
          alignment = tileAlignmentOf(walk, geometry, to, baseBytes[number]);
  auto write = [&](OpBuilder &at) {
    for (auto [lane, column] : llvm::enumerate(stored)) {
      Value offset = arith::ConstantOp::create(
          at, loc(), at.getI64IntegerAttr(static_cast<int64_t>(lane) * step));
      Value where = LLVM::GEPOp::create(at, loc(), first.getType(), storage,
                                        first, LLVM::GEPArg(offset));
      LLVM::StoreOp::create(at, loc(), column, where, alignment);
    }
  };
  storeWhere(condition, place->active, write);
}

} // namespace meshwork::codegen
