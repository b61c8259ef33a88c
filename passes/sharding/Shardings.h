// Shardings as the planner and the propagation compute with them, from and to
// attributes.
#pragma once

#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Transformer.h"
#include "lib/Sharding/Sharding.h"

namespace meshwork::sharding {

using Axes = std::vector<AxisId>; // major first

/// Attribute of `parameter`, `state`, `accumulate` and `assign`: how the state
/// lies between instructions.
inline constexpr llvm::StringLiteral storedName = mesh::MeshDialect::storedName;

Mesh meshFrom(mesh::MeshAttr mesh);
/// Axes that are not in the mesh are left out; verifiers have refused them.
Axes idsOf(mesh::MeshAttr mesh, ::llvm::ArrayRef<::mlir::StringAttr> names);
Sharding fromAttr(mesh::MeshAttr mesh, mesh::ShardingAttr sharding);
/// What `value` says of itself; without that it is on every rank.
Sharding shardingOf(mesh::MeshAttr mesh, ::mlir::Value value);
/// All dims closed.
mesh::ShardingAttr toAttr(mesh::MeshAttr mesh, const Sharding &sharding);
::mlir::ArrayAttr axesAttr(mesh::MeshAttr mesh, const Axes &axes);
/// Closed, with the axes' layouts.
mesh::DimShardingAttr dimAttr(mesh::MeshAttr mesh, const Axes &axes);

/// Whether a rank's part is one block, which a beginning and a length describe.
bool onlyBlocks(const Axes &axes);

/// A tensor on every rank.
Sharding replicated(int64_t numDims);
/// The type of one rank's part.
::mlir::RankedTensorType localType(const Mesh &mesh,
                                   ::mlir::RankedTensorType type,
                                   const Sharding &sharding);
/// "[{"dp"}, {}]", with parts of axes under their own names.
std::string textOf(const Mesh &mesh, const Sharding &sharding);

/// The parameters, and what maps make of parameters and numbers alone, such as
/// a copy in 8 bits: these lie as the parameter does, and do not move for
/// others. Each value is judged once: a residual stream is as long as the model
/// is deep.
class ParameterValues {
public:
  bool contains(::mlir::Value value);

private:
  bool judge(::mlir::Value value);

  ::llvm::DenseMap<::mlir::Value, bool> known;
};

} // namespace meshwork::sharding
