// Pads products of odd extents, such as a vocabulary's: a GPU's library has
// fast kernels for multiples of some size alone. The tensors get room
// (Placement.h), and the product runs into it.
//   rows, columns   Nobody reads what the product writes there.
//   what is summed  The room is zero in both operands. In weights it is so from
//                   the start, since nothing writes behind them. In others it
//                   is made so before.
#include "passes/schedule/Lowering.h"

using namespace mlir;

namespace meshwork::schedule {
namespace {
/// One loop of a product in the two matrices that have it.
struct SharedLoop {
  Place *one;
  int64_t loopOfOne;
  Place *other;
  int64_t loopOfOther;
  bool isSummed;
};
} // namespace

/// What lies in `matrix` behind the end of `loop`, up to `size`, as two loops.
static Place behind(Place matrix, int64_t loop, int64_t size) {
  matrix.offset += matrix.shape[loop] * matrix.strides[loop];
  matrix.shape[loop] = size - matrix.shape[loop];
  int64_t inner = matrix.strides[1] == 1 ? 1 : 2, outer = 3 - inner;
  matrix.shape = {matrix.shape[outer], matrix.shape[inner]};
  matrix.strides = {matrix.strides[outer], matrix.strides[inner]};
  return matrix;
}

static void zeroBehind(Location loc, const Place &matrix, int64_t loop,
                       int64_t size, ProgramBuilder &builder) {
  auto buffer = cast<BufferOp>(matrix.buffer.getDefiningOp());
  if (buffer.getPersistent() && buffer.getKind() == BufferKind::weights)
    return;
  builder.fill(loc, "zero behind rows", behind(matrix, loop, size));
}

void widen(Location loc, Place &lhs, Place &rhs, Place &dst, Lowering &to) {
  int64_t unit =
      to.placement.buffers.bytesOfRows() /
      std::min({elementBytes(lhs), elementBytes(rhs), elementBytes(dst)});
  if (unit == 0)
    return;
  for (const SharedLoop &loop : {SharedLoop{&lhs, 1, &dst, 1, false},
                                 SharedLoop{&rhs, 2, &dst, 2, false},
                                 SharedLoop{&lhs, 2, &rhs, 1, true}}) {
    int64_t size = loop.one->shape[loop.loopOfOne],
            wide = fastExtent(size, unit);
    if (wide == size ||
        !to.placement.buffers.hasRoom(*loop.one, loop.loopOfOne, wide) ||
        !to.placement.buffers.hasRoom(*loop.other, loop.loopOfOther, wide))
      continue;
    if (loop.isSummed) {
      zeroBehind(loc, *loop.one, loop.loopOfOne, wide, to.builder);
      zeroBehind(loc, *loop.other, loop.loopOfOther, wide, to.builder);
    }
    loop.one->shape[loop.loopOfOne] = loop.other->shape[loop.loopOfOther] =
        wide;
  }
}

} // namespace meshwork::schedule
