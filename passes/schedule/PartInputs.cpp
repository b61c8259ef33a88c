// Numbers of a rank's part of a dim, each an input of the program.
#include "passes/schedule/PartInputs.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

bool PartInputs::isOne(Operation *op) {
  return isa_and_nonnull<mesh::PartOpInterface>(op);
}

void PartInputs::place(Operation *op) {
  Value result = op->getResult(0);
  placement.set(result, input(cast<mesh::PartOpInterface>(op).getNumbers(),
                              tensorType(result).getShape()));
}

Place PartInputs::coordinate(ArrayAttr axes, int64_t size) {
  auto names = llvm::to_vector(axes.getAsRange<StringAttr>());
  return input({mesh::PartNumbers::coordinate,
                mesh::DimShardingAttr::of(axes.getContext(), names), size},
               /*shape=*/{});
}

static InputKind kindOf(mesh::PartNumbers::Kind kind) {
  switch (kind) {
  case mesh::PartNumbers::coordinate:
    return InputKind::coordinate;
  case mesh::PartNumbers::extent:
    return InputKind::extent;
  case mesh::PartNumbers::positions:
    return InputKind::positions;
  }
  llvm_unreachable("all kinds are handled");
}

/// What an input is called; two of one name are one.
static std::string nameOf(InputKind kind, const mesh::PartNumbers &numbers) {
  const auto &[_, split, size, hop] = numbers;
  if (split.getAxes().empty())
    return "zero"; // The first of all; copies begin there.
  auto axes = llvm::map_range(split.getAxes(), [&](StringAttr axis) {
    return axis.str() + layout::suffixOf(split.layoutOf(axis));
  });
  return (stringifyInputKind(kind) + " over ").str() + llvm::join(axes, ", ") +
         " of " + std::to_string(size) +
         (hop ? " hop " + std::to_string(hop) : "");
}

Place PartInputs::input(const mesh::PartNumbers &numbers,
                        ArrayRef<int64_t> shape) {
  InputKind kind = kindOf(numbers.kind);
  std::string name = nameOf(kind, numbers);
  auto [known, isNew] = inputs.try_emplace(name);
  if (isNew) {
    Type index = IntegerType::get(numbers.split.getContext(), 32);
    known->second = {
        kind,
        placement.buffers.persistent(name, BufferKind::input, shape, index),
        numbers.split, numbers.size, numbers.hop};
  }
  return known->second.place;
}

} // namespace meshwork::schedule
