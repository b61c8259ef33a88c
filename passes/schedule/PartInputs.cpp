// Numbers of a rank's part of a dim, each an input of the program.
#include "passes/schedule/PartInputs.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

bool PartInputs::isOne(Operation *op) {
  return isa_and_nonnull<mesh::CoordinateOp, mesh::ExtentOp, mesh::PositionsOp>(
      op);
}

void PartInputs::place(Operation *op) {
  Place found =
      llvm::TypeSwitch<Operation *, Place>(op)
          .Case([&](mesh::CoordinateOp op) {
            return coordinate(op.getAxes(), static_cast<int64_t>(op.getSize()));
          })
          .Case([&](mesh::ExtentOp op) {
            return number(InputKind::extent, op.getAxes(),
                          static_cast<int64_t>(op.getSize()));
          })
          .Case([&](mesh::PositionsOp op) {
            return input(InputKind::positions, op.getSplit(),
                         static_cast<int64_t>(op.getSize()),
                         tensorType(op.getResult()).getShape(),
                         static_cast<int64_t>(op.getHop()));
          });
  placement.set(op->getResult(0), found);
}

Place PartInputs::coordinate(ArrayAttr axes, int64_t size) {
  return number(InputKind::coordinate, axes, size);
}

Place PartInputs::number(InputKind kind, ArrayAttr axes, int64_t size) {
  auto names = llvm::to_vector(axes.getAsRange<StringAttr>());
  return input(kind, mesh::DimShardingAttr::of(axes.getContext(), names), size,
               /*shape=*/{}, /*hop=*/0);
}

/// What an input is called; two of one name are one.
static std::string nameOf(InputKind kind, mesh::DimShardingAttr split,
                          int64_t size, int64_t hop) {
  if (split.getAxes().empty())
    return "zero"; // The first of all; copies begin there.
  auto axes = llvm::map_range(split.getAxes(), [&](StringAttr axis) {
    return axis.str() + layout::suffixOf(split.layoutOf(axis));
  });
  return (stringifyInputKind(kind) + " over ").str() + llvm::join(axes, ", ") +
         " of " + std::to_string(size) +
         (hop ? " hop " + std::to_string(hop) : "");
}

Place PartInputs::input(InputKind kind, mesh::DimShardingAttr split,
                        int64_t size, ArrayRef<int64_t> shape, int64_t hop) {
  std::string name = nameOf(kind, split, size, hop);
  auto [known, isNew] = inputs.try_emplace(name);
  if (isNew)
    known->second = {
        kind,
        placement.buffers.persistent(name, BufferKind::input, shape,
                                     IntegerType::get(split.getContext(), 32)),
        split, size, hop};
  return known->second.place;
}

} // namespace meshwork::schedule
