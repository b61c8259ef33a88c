#include "passes/pipeline/Scatter.h"

#include "passes/analysis/TimesOn.h"

using namespace mlir;

namespace meshwork::pipeline {
namespace {

double bytesOf(RankedTensorType type) {
  return static_cast<double>(type.getNumElements()) *
         type.getElementTypeBitWidth() / 8;
}
} // namespace

Scatter::Scatter(func::FuncOp step, StringAttr stages,
                 ArrayRef<std::string> axes, const cost::Machine &machine)
    : mesh(mesh::meshOf(step)),
      stageAxis(static_cast<uint32_t>(mesh.find(stages))),
      times(analysis::timesOn(machine, mesh)) {
  for (auto [i, axis] : llvm::enumerate(mesh.getNames()))
    if (llvm::is_contained(axes, axis.getValue()) && mesh.sizeOf(axis) > 1)
      uniform.emplace_back(static_cast<uint32_t>(i), Uniform(step, axis));
}

std::optional<Parts> Scatter::of(Value value) const {
  SmallVector<unsigned> over;
  for (const auto &[axis, same] : uniform)
    if (same.contains(value))
      over.push_back(axis);
  auto whole = cast<RankedTensorType>(value.getType());
  std::optional<Parts> parts = cut(whole, over);
  return parts && isFaster(whole, parts->type, over) ? parts : std::nullopt;
}

/// Along the first dim that is longer than 1, if it divides: the part is then
/// one piece of memory, which is sent where it lies.
std::optional<Parts> Scatter::cut(RankedTensorType type,
                                  ArrayRef<unsigned> over) const {
  int64_t ranks = 1;
  SmallVector<Attribute> names;
  for (unsigned axis : over) {
    ranks *= mesh.getSizes()[axis];
    names.push_back(mesh.getNames()[axis]);
  }
  SmallVector<int64_t> shape(type.getShape());
  auto dim = llvm::find_if(shape, [](int64_t size) { return size != 1; });
  if (ranks == 1 || dim == shape.end() || *dim % ranks != 0)
    return std::nullopt;
  *dim /= ranks;
  return Parts{
      dim - shape.begin(), ArrayAttr::get(type.getContext(), names),
      RankedTensorType::get(shape, type.getElementType(), type.getEncoding())};
}

/// Recompute gathers activations again in the backward pass.
bool Scatter::isFaster(RankedTensorType whole, RankedTensorType part,
                       ArrayRef<unsigned> over) const {
  SmallVector<uint32_t> axes(over.begin(), over.end());
  double gather = times.collective(plan::CollectiveKind::all_gather,
                                   bytesOf(part), {axes.data(), axes.size()});
  return times.transfer(bytesOf(part), stageAxis) + 2 * gather <
         times.transfer(bytesOf(whole), stageAxis);
}

} // namespace meshwork::pipeline
