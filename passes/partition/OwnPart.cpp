#include "passes/partition/OwnPart.h"

using namespace mlir;
namespace meshwork::partition {
using namespace transformer;
using namespace sharding;

static int64_t sizeOf(Value value, unsigned dim) {
  return tensorType(value).getDimSize(dim);
}

Axes OwnPart::split(Value value, unsigned dim) const {
  return shardingOf(attr, value).dims[dim];
}

bool OwnPart::isSplit(Value value, unsigned dim) const {
  return !split(value, dim).empty();
}

bool OwnPart::isBlock(Value value, unsigned dim) const {
  return onlyBlocks(split(value, dim));
}

bool OwnPart::isUneven(Value value, unsigned dim) const {
  return masks.isUneven(sizeOf(value, dim), split(value, dim));
}

bool OwnPart::isUnique(Value value) const {
  int64_t parts = 1;
  for (const Axes &axes : shardingOf(attr, value).dims)
    parts *= mesh.numRanks(axes);
  return parts == mesh.numRanks();
}

ArrayAttr OwnPart::axesOf(Value value, unsigned dim) const {
  return axesAttr(attr, split(value, dim));
}

RankedTensorType OwnPart::typeOf(Value value, Type element) const {
  return localType(mesh, withElement(value.getType(), element),
                   shardingOf(attr, value));
}

Value OwnPart::first(Value value, unsigned dim) {
  OpBuilder builder(at);
  auto scalar = RankedTensorType::get({}, builder.getI32Type());
  return mesh::CoordinateOp::create(builder, at->getLoc(), scalar,
                                    axesOf(value, dim), sizeOf(value, dim));
}

Value OwnPart::extent(Value value, unsigned dim) {
  return masks.extent(at, sizeOf(value, dim), split(value, dim));
}

Value OwnPart::positions(Value value, unsigned dim) {
  return masks.positions(at, sizeOf(value, dim), split(value, dim),
                         dimsOf(value).getNames()[dim]);
}

OwnElements OwnPart::own(Value value, unsigned dim) {
  return masks.own(at, sizeOf(value, dim), split(value, dim),
                   dimsOf(value).getNames()[dim]);
}

} // namespace meshwork::partition
