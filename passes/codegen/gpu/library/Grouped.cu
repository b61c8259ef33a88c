// Products of experts: each one's rows by its matrix, and the gradient of the
// matrices. How many rows an expert has is known on the GPU alone; blocks are
// as many as the worst case needs, and find what is theirs.
#include "passes/codegen/gpu/library/ExpertRows.h"
#include "passes/codegen/gpu/library/GroupedMma.h"
#include "passes/codegen/gpu/library/GroupedPlain.h"

namespace meshwork {
namespace {
using namespace grouped;

/// `function` with an engine for elements of so many bytes, as a null pointer.
template <bool leftAlong, bool rightAlong, typename Function>
MESHWORK_INLINE void withEngine(i64 bytes, Function function) {
  if (bytes == 2)
    function(static_cast<MmaEngine<leftAlong, rightAlong> *>(nullptr));
  else
    function(static_cast<PlainEngine<leftAlong, rightAlong> *>(nullptr));
}

/// `to` = left times right, whose data are of the engine's type.
template <typename Engine>
MESHWORK_INLINE void computeTile(const Operand<typename Engine::Element> &left,
                                 const Operand<typename Engine::Element> &right,
                                 bool hasExpert, const Destination &to,
                                 i64 outBytes) {
  float sums[Engine::rows][Engine::columns] = {};
  if (hasExpert)
    multiply<Engine>(sums, left, right);
  withType(outBytes, [&](auto *type) { storeTile<Engine>(to, sums, type); });
}

MESHWORK_INLINE void *elementAt(void *data, i64 index, i64 bytes) {
  return static_cast<u8 *>(data) + index * bytes;
}
} // namespace

/// out[r, n] = sum over k < depth of lhs[r, k] * rhs[e, k, n] for the rows r of
/// expert e, n < width; 0 in rows of no expert. A block has a tile of rows and,
/// of `columnTiles`, one of columns. Strides in elements: rhs has dense
/// columns, rhsLine from one to the next, where `rhsAlong`, else dense rows.
DEVICE_FUNCTION void meshwork_grouped_product(
    const void *lhs, const void *rhs, const i32 *begins, void *out, i64 experts,
    i64 rows, i64 depth, i64 width, i64 columnTiles, i64 lhsStride,
    i64 rhsExpert, i64 rhsLine, i64 outStride, i64 rhsAlong, i64 lhsAligned,
    i64 rhsAligned, i64 outPaired, i64 bytes, i64 outBytes) {
  i64 rowBlock = blockInGrid() / columnTiles;
  i32 column =
      static_cast<i32>(blockInGrid() - rowBlock * columnTiles) * tileSize;
  RowTile tile = rowTile<tileSize>(
      {begins, static_cast<i32>(experts), static_cast<i32>(rows)}, rowBlock);
  if (tile.count <= 0)
    return;
  bool hasExpert = tile.expert >= 0 && tile.expert < experts;
  i32 sum = static_cast<i32>(depth), columns = static_cast<i32>(width) - column;
  auto compute = [&](auto *engine) {
    using Engine = __remove_pointer(decltype(engine));
    using T = typename Engine::Element;
    Operand<T> left{static_cast<const T *>(lhs) + tile.first * lhsStride,
                    lhsStride, tile.count, sum, lhsAligned != 0};
    Operand<T> right{static_cast<const T *>(rhs) + tile.expert * rhsExpert +
                         column * (rhsAlong ? rhsLine : 1),
                     rhsLine, columns, sum, rhsAligned != 0};
    computeTile<Engine>(
        left, right, hasExpert,
        {elementAt(out, tile.first * outStride + column, outBytes), outStride,
         tile.count, columns, outPaired != 0, false},
        outBytes);
  };
  if (rhsAlong)
    withEngine<true, true>(bytes, compute);
  else
    withEngine<true, false>(bytes, compute);
}

/// dst[e, k, n] (+)= the sum over the rows r of expert e of down[r, k] *
/// across[r, n], k < height, n < width. A block has a tile of one expert's
/// matrix. Strides in elements.
DEVICE_FUNCTION void meshwork_grouped_gradient(
    const void *down, const void *across, const i32 *begins, void *dst,
    i32 adds, i64 experts, i64 rows, i64 height, i64 width, i64 rowTiles,
    i64 columnTiles, i64 downStride, i64 acrossStride, i64 dstExpert,
    i64 dstStride, i64 downAligned, i64 acrossAligned, i64 dstPaired, i64 bytes,
    i64 dstBytes) {
  i64 line = blockInGrid() / columnTiles, expert = line / rowTiles;
  i32 column = static_cast<i32>(blockInGrid() - line * columnTiles) * tileSize,
      row = static_cast<i32>(line - expert * rowTiles) * tileSize;
  Begins all{begins, static_cast<i32>(experts), static_cast<i32>(rows)};
  i32 first = all.at(static_cast<i32>(expert)),
      count = all.at(static_cast<i32>(expert) + 1) - first;
  if (count == 0 && adds)
    return;
  i32 rowsLeft = static_cast<i32>(height) - row,
      columnsLeft = static_cast<i32>(width) - column;
  withEngine<false, false>(bytes, [&](auto *engine) {
    using Engine = __remove_pointer(decltype(engine));
    using T = typename Engine::Element;
    Operand<T> left{static_cast<const T *>(down) + first * downStride + row,
                    downStride, rowsLeft, count, downAligned != 0};
    Operand<T> right{static_cast<const T *>(across) + first * acrossStride +
                         column,
                     acrossStride, columnsLeft, count, acrossAligned != 0};
    computeTile<Engine>(
        left, right, true,
        {elementAt(dst, expert * dstExpert + row * dstStride + column,
                   dstBytes),
         dstStride, rowsLeft, columnsLeft, dstPaired != 0, adds != 0},
        dstBytes);
  });
}

} // namespace meshwork
