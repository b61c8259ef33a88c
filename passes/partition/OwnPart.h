// A rank's part of values, as ops ask for it.
#pragma once

#include "passes/partition/Mask.h"

namespace meshwork::partition {

class OwnPart : public transformer::RankPart {
public:
  /// For what asks before `at`. The others outlive it.
  OwnPart(mesh::MeshAttr attr, const sharding::Mesh &mesh, const Masks &masks,
          ::mlir::Operation *at)
      : attr(attr), mesh(mesh), masks(masks), at(at) {}

  bool isSplit(::mlir::Value value, unsigned dim) const override;
  bool isBlock(::mlir::Value value, unsigned dim) const override;
  bool isUneven(::mlir::Value value, unsigned dim) const override;
  bool isUnique(::mlir::Value value) const override;
  ::mlir::ArrayAttr axesOf(::mlir::Value value, unsigned dim) const override;
  ::mlir::RankedTensorType typeOf(::mlir::Value value,
                                  ::mlir::Type element) const override;
  ::mlir::Value first(::mlir::Value value, unsigned dim) override;
  ::mlir::Value extent(::mlir::Value value, unsigned dim) override;
  ::mlir::Value positions(::mlir::Value value, unsigned dim) override;
  transformer::OwnElements own(::mlir::Value value, unsigned dim) override;

private:
  sharding::Axes split(::mlir::Value value, unsigned dim) const;

  mesh::MeshAttr attr;
  const sharding::Mesh &mesh;
  const Masks &masks;
  ::mlir::Operation *at;
};

} // namespace meshwork::partition
