// Tiles of which maxima are found: a block takes several, one after the other,
// each as a kernel without maxima would, and keeps what is largest so far.
#include "passes/codegen/gpu/BlockKernel.h"

using namespace mlir;
namespace meshwork::codegen {

/// Of S places of blocks chunk c of C has those from c S / C on.
Value BlockKernel::firstTile(Value chunk) {
  OpBuilder &b = body.builder();
  auto constant = [&](int64_t number) {
    return arith::ConstantOp::create(b, body.loc(),
                                     b.getI64IntegerAttr(number));
  };
  bool isWide = chunk.getType() == b.getI64Type();
  if (!isWide)
    chunk = arith::ExtUIOp::create(b, body.loc(), b.getI64Type(), chunk);
  Value first = arith::DivUIOp::create(
      b, body.loc(),
      arith::MulIOp::create(b, body.loc(), chunk,
                            constant(geometry.blocksOfTiles())),
      constant(geometry.chunksOfTiles));
  return isWide
             ? first
             : arith::TruncIOp::create(b, body.loc(), body.countType(), first)
                   .getResult();
}

void BlockKernel::emitTiles() {
  Value chunk = blockRow, lower = firstTile(chunk),
        upper = firstTile(plus(chunk, body.number(1)));
  initChunk();
  carried =
      body.loop(ofBoth, lower, upper, 1, carried,
                [&](Value block, ValueRange before) -> Values {
                  carried.assign(before.begin(), before.end());
                  findBlock(block);
                  bindRow(plus(mul(blockRow, geometry.rowsAtOnce), rowOfBlock),
                          body.number(geometry.tilesOf(walk.numRows)));
                  makePlaces();
                  makeTile();
                  emitRow();
                  addRowToChunk();
                  body.unbindRow();
                  places.clear();
                  return carried;
                });
  rowExists = tileRow = {};
  blockRow = chunk;
  blockColumn = body.number(0);
  storeChunk();
}

} // namespace meshwork::codegen
