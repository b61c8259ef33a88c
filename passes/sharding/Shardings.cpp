// Shardings from and to attributes.
#include "passes/sharding/Shardings.h"
#include "dialects/transformer/Facts.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::sharding {

Mesh meshFrom(mesh::MeshAttr attr) {
  Mesh mesh;
  for (auto [name, size] : llvm::zip_equal(attr.getNames(), attr.getSizes()))
    mesh.axes.push_back({name.str(), size});
  return mesh;
}

Axes idsOf(mesh::MeshAttr mesh, ArrayRef<StringAttr> names) {
  Axes ids;
  for (StringAttr name : names)
    if (int64_t at = mesh.find(name); at >= 0)
      ids.push_back(static_cast<AxisId>(at));
  return ids;
}

Sharding fromAttr(mesh::MeshAttr mesh, mesh::ShardingAttr attr) {
  Sharding sharding;
  for (mesh::DimShardingAttr dim : attr.getDims()) {
    Axes &axes = sharding.dims.emplace_back(idsOf(mesh, dim.getAxes()));
    for (AxisId &axis : axes)
      axis.layout = dim.layoutOf(mesh.getNames()[axis]);
  }
  sharding.partial = idsOf(mesh, attr.getPartial());
  sharding.reduction = attr.getReduction() == mesh::Reduction::max
                           ? Reduction::max
                           : Reduction::sum;
  return sharding;
}

static SmallVector<StringAttr> namesOf(mesh::MeshAttr mesh, const Axes &axes) {
  return llvm::map_to_vector(
      axes, [&](AxisId axis) { return mesh.getNames()[axis]; });
}

mesh::DimShardingAttr dimAttr(mesh::MeshAttr mesh, const Axes &axes) {
  auto layouts =
      llvm::map_to_vector(axes, [](AxisId axis) { return axis.layout; });
  return mesh::DimShardingAttr::of(mesh.getContext(), namesOf(mesh, axes),
                                   layouts);
}

Sharding shardingOf(mesh::MeshAttr mesh, Value value) {
  mesh::ShardingAttr sharding = mesh::shardingOf(value);
  return sharding ? fromAttr(mesh, sharding)
                  : replicated(transformer::tensorType(value).getRank());
}

mesh::ShardingAttr toAttr(mesh::MeshAttr mesh, const Sharding &sharding) {
  MLIRContext *context = mesh.getContext();
  SmallVector<mesh::DimShardingAttr> dims;
  for (const Axes &axes : sharding.dims)
    dims.push_back(dimAttr(mesh, axes));
  return mesh::ShardingAttr::get(
      context, dims, {}, namesOf(mesh, sharding.partial),
      sharding.reduction == Reduction::max ? mesh::Reduction::max
                                           : mesh::Reduction::sum);
}

ArrayAttr axesAttr(mesh::MeshAttr mesh, const Axes &axes) {
  return ArrayAttr::get(
      mesh.getContext(),
      llvm::map_to_vector(axes, [&](AxisId axis) -> Attribute {
        return mesh.getNames()[axis];
      }));
}

bool onlyBlocks(const Axes &axes) {
  return llvm::all_of(
      axes, [](AxisId axis) { return axis.layout == DimLayout::block; });
}

Sharding replicated(int64_t numDims) {
  return {std::vector<Axes>(numDims), {}, Reduction::sum};
}

RankedTensorType localType(const Mesh &mesh, RankedTensorType type,
                           const Sharding &sharding) {
  SmallVector<int64_t> shape(type.getShape());
  for (auto [size, axes] : llvm::zip_equal(shape, sharding.dims))
    size = localSize(mesh, size, axes);
  return RankedTensorType::get(shape, type.getElementType(),
                               type.getEncoding());
}

std::string textOf(const Mesh &mesh, const Sharding &sharding) {
  return sharding.text(mesh);
}

bool ParameterValues::contains(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  bool isOne = judge(value); // Judges operands, so `known` may grow.
  return known[value] = isOne;
}

bool ParameterValues::judge(Value value) {
  Operation *op = value.getDefiningOp();
  if (op && (isa<transformer::ParameterOp>(op) || isOfStep(op)))
    return true;
  if (auto reshard = dyn_cast_or_null<mesh::ReshardOp>(op))
    return contains(reshard.getInput());
  auto map = dyn_cast_or_null<MapOp>(op);
  auto hasDims = [](Value v) { return tensorType(v).getRank() > 0; };
  return map && llvm::any_of(map.getInputs(), hasDims) &&
         llvm::all_of(map.getInputs(),
                      [&](Value v) { return !hasDims(v) || contains(v); });
}

} // namespace meshwork::sharding
