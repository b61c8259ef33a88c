// What a reshard becomes on one rank: a collective a step, and changes of order
// where a layout is entered or left.
#pragma once

#include "dialects/mesh/Mesh.h"
#include "lib/Sharding/Reshard.h"
#include "mlir/IR/Builders.h"

namespace meshwork::partition {

class ReshardSteps {
public:
  /// `mesh` outlives it.
  ReshardSteps(mesh::MeshAttr attr, const sharding::Mesh &mesh)
      : attr(attr), mesh(mesh), builder(attr.getContext()) {}

  /// In front of `op`: `input` after one step of it, of local type `type`.
  ::mlir::Value build(mesh::ReshardOp op, ::mlir::Value input,
                      const sharding::Step &step,
                      ::mlir::RankedTensorType type);

private:
  /// A dim over `count` ranks, whose parts stand one behind the other.
  struct Parts;

  ::mlir::Value reordered(mesh::ReshardOp op, ::mlir::Value input,
                          const Parts &parts, ::mlir::RankedTensorType result,
                          bool toParts);
  ::mlir::Value collective(mesh::ReshardOp op, ::mlir::Value input,
                           const sharding::Step &step,
                           ::mlir::RankedTensorType type);
  ::llvm::SmallVector<int64_t> sourcesOf(const sharding::Step &step) const;

  mesh::MeshAttr attr;
  const sharding::Mesh &mesh;
  ::mlir::OpBuilder builder;
};

} // namespace meshwork::partition
