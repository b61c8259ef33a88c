// What a cluster computes, as flops: a function of the cluster alone.
#include "passes/codegen/KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;
namespace {

uint64_t flopsOf(Operation &op) {
  if (isa<math::FmaOp>(op))
    return 2;
  if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp,
          arith::NegFOp, arith::RemFOp, arith::MaximumFOp, arith::MinimumFOp,
          arith::MaxNumFOp, arith::MinNumFOp>(op))
    return 1;
  return isa<math::MathDialect>(op.getDialect());
}

/// Adds up one `map`. A kernel evaluates an op once for each position that its
/// operands tell apart: what is the same along a row, once a row.
class MapFlops {
public:
  explicit MapFlops(MapOp map) : map(map) {
    noteSizes(map->getResult(0).getType());
    for (auto [argument, input] : llvm::zip_equal(
             map.getBody().front().getArguments(), map.getInputs())) {
      noteSizes(input.getType());
      for (StringAttr dim : dimsOf(input.getType()).getNames())
        dims[argument].insert(dim);
    }
  }
  uint64_t run() {
    uint64_t flops = 0;
    for (Operation &op : map.getBody().front().without_terminator()) {
      llvm::SetVector<StringAttr> known;
      for (Value operand : op.getOperands())
        known.insert_range(dims[operand]);
      if (auto index = dyn_cast<IndexOp>(op))
        known.insert(index.getDimAttr());
      if (isa<DrawOpInterface>(op))
        known.insert_range(dimsOf(map->getResult(0).getType()).getNames());
      flops = llvm::SaturatingAdd(
          flops, llvm::SaturatingMultiply(flopsOf(op), positions(known)));
      for (Value result : op.getResults())
        dims[result] = known;
    }
    return flops;
  }

private:
  void noteSizes(Type type) {
    for (auto [name, size] : llvm::zip_equal(
             dimsOf(type).getNames(), cast<RankedTensorType>(type).getShape()))
      sizes.try_emplace(name, size);
  }
  uint64_t positions(const llvm::SetVector<StringAttr> &known) {
    uint64_t product = 1;
    for (StringAttr dim : known)
      product = llvm::SaturatingMultiply(
          product,
          static_cast<uint64_t>(std::max<int64_t>(1, sizes.lookup(dim))));
    return product;
  }

  MapOp map;
  llvm::DenseMap<StringAttr, int64_t> sizes;
  llvm::DenseMap<Value, llvm::SetVector<StringAttr>> dims;
};

} // namespace

uint64_t countFlops(FusedOp op) {
  uint64_t flops = 0;
  for (Operation &inner : op.getBody().front()) {
    if (auto map = dyn_cast<MapOp>(inner))
      flops = llvm::SaturatingAdd(flops, MapFlops(map).run());
    auto reduce = dyn_cast<ReduceOp>(inner);
    if (!reduce)
      continue;
    uint64_t elements = 1;
    for (int64_t size :
         cast<RankedTensorType>(reduce.getInput().getType()).getShape())
      elements = llvm::SaturatingMultiply(
          elements, static_cast<uint64_t>(std::max<int64_t>(1, size)));
    flops = llvm::SaturatingAdd(flops, elements);
  }
  // The plan's attribute is signed.
  return std::min<uint64_t>(flops, INT64_MAX);
}

} // namespace meshwork::codegen
