// A rank's part of a whole tensor, and numbers that say where it lies.
#include "passes/schedule/LowerToSchedule.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

/// The slice of a replicated tensor is a view of it, but where the last block
/// would lie beyond the tensor.
LogicalResult Lowering::lowerSlice(mesh::SliceOp op) {
  FailureOr<Place> whole = placement.of(op.getInput());
  if (failed(whole))
    return failure();
  int64_t dim = op.getDim(), all = tensorType(op.getInput()).getDimSize(dim),
          size = tensorType(op.getResult()).getDimSize(dim);
  if (all == size * placement.groupSize(op.getAxes())) {
    placement.set(op.getResult(),
                  Placement::block(*whole, dim, size, op.getAxes()));
    noteReduced(op.getInput(), op.getResult());
    return success();
  }
  FailureOr<Place> part = placeOfPart(op.getInput(), op.getResult());
  if (failed(part))
    return failure();
  placement.set(op.getResult(), *part);
  noteReduced(op.getInput(), op.getResult());
  flush();
  Layout slab = slabLayout(tensorType(op.getInput()).getRank(), dim);
  FailureOr<Place> from = readable(op.getInput(), slab),
                   to = writable(op.getResult(), slab);
  if (failed(from) || failed(to))
    return failure();
  if (from->buffer == to->buffer) // an instruction's share none
    to = beside(*to, slab, op.getLoc());
  Value first =
      Placement::view(builder, op.getLoc(),
                      numberOfPart(InputKind::coordinate, op.getAxes(), all));
  Value source = Placement::view(builder, op.getLoc(), *from),
        target = Placement::view(builder, op.getLoc(), *to);
  CopyBlockOp::create(builder, op.getLoc(), builder.getStringAttr("slice"),
                      i64(0), i64(2 * bytesOfType(op.getType())), i64(dim),
                      source, first, target);
  return success();
}

/// A number that depends on where a rank's part of a dim lies.
Place Lowering::numberOfPart(InputKind kind, ArrayAttr axes, int64_t size) {
  auto names = llvm::to_vector(axes.getAsRange<StringAttr>());
  return inputOfPart(kind,
                     mesh::DimShardingAttr::of(builder.getContext(), names),
                     size, /*shape=*/{});
}

/// What the runtime writes of a rank's part of a dim; each once.
Place Lowering::inputOfPart(InputKind kind, mesh::DimShardingAttr split,
                            int64_t size, ArrayRef<int64_t> shape,
                            int64_t hop) {
  std::string name = "zero"; // The first of all; copies begin there.
  if (!split.getAxes().empty())
    name = (stringifyInputKind(kind) + " over ").str() +
           llvm::join(llvm::map_range(split.getAxes(),
                                      [&](StringAttr axis) {
                                        return axis.str() +
                                               layout::suffixOf(
                                                   split.layoutOf(axis));
                                      }),
                      ", ") +
           " of " + std::to_string(size) +
           (hop ? " hop " + std::to_string(hop) : "");
  auto [known, isNew] = coordinates.try_emplace(name);
  if (isNew)
    known->second = {kind,
                     placement.persistent(name, BufferKind::input, shape,
                                          builder.getI32Type()),
                     split, size, hop};
  return known->second.place;
}

LogicalResult Lowering::lowerNumberOfPart(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](mesh::CoordinateOp op) {
        placement.set(op.getResult(),
                      numberOfPart(InputKind::coordinate, op.getAxes(),
                                   static_cast<int64_t>(op.getSize())));
      })
      .Case([&](mesh::ExtentOp op) {
        placement.set(op.getResult(),
                      numberOfPart(InputKind::extent, op.getAxes(),
                                   static_cast<int64_t>(op.getSize())));
      })
      .Case([&](mesh::PositionsOp op) {
        placement.set(op.getResult(),
                      inputOfPart(InputKind::positions, op.getSplit(),
                                  static_cast<int64_t>(op.getSize()),
                                  tensorType(op.getResult()).getShape(),
                                  static_cast<int64_t>(op.getHop())));
      });
  return success();
}

} // namespace meshwork::schedule
