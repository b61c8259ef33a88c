// Rows and columns of a thread.
#include "passes/codegen/gpu/BlockKernel.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;

bool BlockKernel::isMax(ReduceOp reduce) {
  return reduce.getKind() == Reduction::max;
}

BlockKernel::BlockKernel(const Walk &walk, const Geometry &geometry,
                         ArrayRef<int64_t> baseBytes)
    : walk(walk), geometry(geometry), body(walk, geometry, baseBytes),
      isChunked(walk.split == Split::chunks) {
  auto yield =
      cast<YieldOp>(FusedOp(walk.op).getBody().front().getTerminator());
  yields.append(yield.operand_begin(), yield.operand_end());
}

Value BlockKernel::mul(Value a, int64_t b) {
  return arith::MulIOp::create(body.builder(), body.loc(), a, body.number(b));
}
Value BlockKernel::div(Value a, int64_t b) {
  return arith::DivUIOp::create(body.builder(), body.loc(), a, body.number(b));
}
Value BlockKernel::rem(Value a, int64_t b) {
  return arith::RemUIOp::create(body.builder(), body.loc(), a, body.number(b));
}
Value BlockKernel::plus(Value a, Value b) {
  return arith::AddIOp::create(body.builder(), body.loc(), a, b);
}
Value BlockKernel::isLess(Value a, Value b) {
  return arith::CmpIOp::create(body.builder(), body.loc(),
                               arith::CmpIPredicate::slt, a, b);
}
Value BlockKernel::isZero(Value a) {
  return arith::CmpIOp::create(body.builder(), body.loc(),
                               arith::CmpIPredicate::eq, a, body.number(0));
}

Value BlockKernel::both(Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return arith::AndIOp::create(body.builder(), body.loc(), a, b);
}

void BlockKernel::build(const BlockPart &part,
                        ArrayRef<DrawOpInterface> draws) {
  body.begin(part.entry, part.pointers);
  for (auto [draw, stream] : llvm::zip_equal(draws, part.streams))
    body.setStream(draw, stream);
  shared = part.shared;
  launchedThreads = part.threads;
  findThread(part.block);
  if (geometry.chunksOfTiles)
    emitTiles();
  else if (isChunked)
    emitChunk();
  else {
    bindRow(plus(mul(blockRow, geometry.rowsAtOnce), rowOfBlock),
            body.number(geometry.tilesOf(walk.numRows)));
    makePlaces();
    makeTile();
    emitRow();
    storeRowResults();
  }
  gpu::ReturnOp::create(body.builder(), body.loc());
}

void BlockKernel::findThread(Value block) {
  OpBuilder &b = body.builder();
  thread = arith::IndexCastOp::create(
      b, body.loc(), body.countType(),
      gpu::ThreadIdOp::create(b, body.loc(), gpu::Dimension::x));
  block = body.toCount(b, block);
  if (geometry.verticalParts > 1) {
    verticalPart = rem(thread, geometry.verticalParts);
    thread = div(thread, geometry.verticalParts);
    body.setVerticalPart(verticalPart);
  }
  lane = rem(thread, 32);
  ofRowThread =
      geometry.rowsAtOnce == 1 ? thread : rem(thread, geometry.threadsPerRow);
  rowOfBlock = geometry.rowsAtOnce == 1 ? body.number(0)
                                        : div(thread, geometry.threadsPerRow);
  if (geometry.chunksOfTiles)
    blockRow = block; // The chunk; its places of blocks come one by one.
  else
    findBlock(block);
}

void BlockKernel::findBlock(Value block) {
  blockRow = geometry.columnBlocks == 1 ? block
             : geometry.rowBlocks == 1  ? body.number(0)
                                        : div(block, geometry.columnBlocks);
  blockColumn = geometry.columnBlocks == 1 ? body.number(0)
                : geometry.rowBlocks == 1  ? block
                                           : rem(block, geometry.columnBlocks);
}

/// Threads past the last row walk it again, and store nothing.
void BlockKernel::bindRow(Value row, Value end) {
  bool mayPass =
      isChunked ? geometry.rowsAtOnce > 1
                : geometry.tilesOf(walk.numRows) % geometry.rowsAtOnce != 0;
  if (mayPass) {
    rowExists = isLess(row, end);
    Value last =
        arith::SubIOp::create(body.builder(), body.loc(), end, body.number(1));
    row = arith::MinSIOp::create(body.builder(), body.loc(), row, last);
  }
  if (verticalPart) // All of them have the sum, one stores it.
    rowExists = both(rowExists, isZero(verticalPart));
  bindRowPositions(row);
  if (geometry.shifted)
    shift = body.misalignment();
}

void BlockKernel::bindRowPositions(Value row) {
  for (auto [i, dim] : llvm::enumerate(llvm::reverse(walk.rows))) {
    if (i == 0 && geometry.tileRows > 1) {
      int64_t tiles = geometry.tilesOf(dim.size);
      tileRow =
          mul(walk.rows.size() == 1 ? row : rem(row, tiles), geometry.tileRows);
      row = div(row, tiles);
      continue;
    }
    if (i + 1 == walk.rows.size()) {
      body.bindRow(dim.key, row);
      break;
    }
    body.bindRow(dim.key, rem(row, dim.size));
    row = div(row, dim.size);
  }
}

void BlockKernel::bindColumns(Place &place, Value column) {
  for (auto [i, dim] : llvm::enumerate(llvm::reverse(walk.cols))) {
    if (i + 1 == walk.cols.size()) {
      place.positions.push_back({dim.key, column});
      return;
    }
    place.positions.push_back({dim.key, rem(column, dim.size)});
    column = div(column, dim.size);
  }
}

Place BlockKernel::placeOf(Value vector, bool isActive, bool isWhole) {
  Place place;
  OpBuilder &b = body.builder();
  if (!isActive) {
    place.active =
        isLess(vector, body.number(geometry.vectorsOf(walk.numCols)));
    vector = arith::SelectOp::create(b, body.loc(), place.active, vector,
                                     body.number(0));
  }
  Value column = mul(vector, geometry.width);
  if (geometry.shifted)
    column = arith::SubIOp::create(b, body.loc(), column, shift);
  if (geometry.shifted && !isWhole) {
    SmallVector<Attribute> steps;
    for (int64_t i = 0; i < geometry.width; ++i)
      steps.push_back(b.getIntegerAttr(body.countType(), i));
    auto type = VectorType::get({geometry.width}, body.countType());
    Value along = arith::ConstantOp::create(
        b, body.loc(), DenseElementsAttr::get(type, steps));
    Value columns =
        arith::AddIOp::create(b, body.loc(), body.spread(b, column), along);
    // Below zero is above everything.
    Value size = body.spread(b, body.number(walk.numCols));
    place.lanes = arith::CmpIOp::create(
        b, body.loc(), arith::CmpIPredicate::ult, columns, size);
  }
  bindColumns(place, column);
  return place;
}

void BlockKernel::makePlaces() {
  if (geometry.loops)
    return;
  if (walk.cols.empty()) {
    places.push_back({});
    return;
  }
  int64_t covered = geometry.columnBlocks * geometry.vectorsPerBlock();
  bool isExact = covered == geometry.vectorsOf(walk.numCols);
  Value first = plus(mul(blockColumn, geometry.vectorsPerBlock()), ofRowThread);
  for (int64_t i = 0; i < geometry.vectors; ++i) {
    Value vector =
        i ? plus(first, body.number(i * geometry.threadsPerRow)) : first;
    bool isActive = isExact || (geometry.columnBlocks == 1 &&
                                (i + 1) * geometry.threadsPerRow <=
                                    geometry.vectorsOf(walk.numCols));
    places.push_back(placeOf(vector, isActive));
    places.back().number = i;
  }
}

void BlockKernel::makeTile() {
  if (!tileRow)
    return;
  places.append(geometry.tileRows - 1, Place(places.front()));
  for (auto [i, place] : llvm::enumerate(places)) {
    place.number = i;
    place.positions.push_back(
        {walk.rows.back().key, plus(tileRow, body.number(i))});
  }
}

ArrayRef<ReduceOp> BlockKernel::reductionsOf(unsigned pass) {
  return pass < walk.passes.size() ? ArrayRef<ReduceOp>(walk.passes[pass])
                                   : ArrayRef<ReduceOp>();
}

ReduceOp BlockKernel::reductionOf(unsigned result) {
  return yields[result].getDefiningOp<ReduceOp>();
}

/// `part` where the place exists, else what changes no sum.
Value BlockKernel::onlyExisting(Value part, Value otherwise) {
  return op([&](OpBuilder &b, Location loc) -> Value {
    const Place &place = *body.current();
    if (place.lanes)
      part = arith::SelectOp::create(b, loc, place.lanes, body.spread(b, part),
                                     body.spread(b, otherwise));
    if (!place.active)
      return part;
    bool isWide = isa<VectorType>(part.getType());
    return arith::SelectOp::create(b, loc, place.active, part,
                                   isWide ? body.spread(b, otherwise)
                                          : otherwise);
  });
}

void BlockKernel::emitRow() {
  unsigned passes = std::max<unsigned>(walk.passes.size(), walk.storePass + 1);
  if (!geometry.loops)
    loadHeld();
  for (unsigned pass = 0; pass < passes; ++pass)
    geometry.loops ? emitLoopedPass(pass) : emitHeldPass(pass);
  body.setPlace(nullptr);
}

void BlockKernel::loadHeld() {
  for (Place &place : places) {
    body.setPlace(&place);
    body.preload();
  }
  body.setPlace(nullptr);
}

/// A pass over vectors that the thread holds.
void BlockKernel::emitHeldPass(unsigned pass) {
  Values sums;
  SmallVector<ReduceOp> summed;
  for (ReduceOp reduce : reductionsOf(pass)) {
    if (walk.formOf(reduce) == ReduceForm::rows)
      continue; // added up over all rows (addRowToChunk)
    Value sum;
    for (Place &place : places) {
      body.setPlace(&place);
      Value part = body.eval(reduce.getInput()).value;
      if (!walk.cols.empty())
        part = onlyExisting(body.spread(body.builder(), part),
                            body.identity(isMax(reduce)));
      sum = sum ? body.combine(body.builder(), isMax(reduce), sum, part) : part;
    }
    sums.push_back(combineLanes(sum, isMax(reduce)));
    summed.push_back(reduce);
  }
  reduceThreads(sums, summed, geometry.threadsPerRow);
  for (auto [reduce, sum] : llvm::zip_equal(summed, sums))
    body.define(reduce, sum);
  if (pass != walk.storePass)
    return;
  for (Place &place : places) {
    body.setPlace(&place);
    storeColumns();
  }
  storeTile();
}

bool BlockKernel::isStoredByTile(unsigned result) const {
  return tileRow && liesAlongRows(walk, walk.results[result]);
}

void BlockKernel::storeTile() {
  for (unsigned i = 0; i < walk.results.size(); ++i) {
    if (!isStoredByTile(i))
      continue;
    Values rows;
    for (Place &place : places) {
      body.setPlace(&place);
      rows.push_back(body.eval(yields[i]).value);
    }
    body.setPlace(&places.front());
    body.storeTile(i, rows, rowExists);
  }
}

void BlockKernel::storeColumns() {
  SmallVector<std::pair<unsigned, Value>> stores;
  for (unsigned i = 0; i < walk.results.size(); ++i)
    if (isSummedInMemory(i))
      stores.push_back({i, sumWithMemory(i)});
    else if (walk.hasCols(walk.results[i]) && !walk.isChunked(i) &&
             !isStoredByTile(i))
      stores.push_back({i, body.eval(yields[i]).value});
  for (auto [i, value] : stores)
    body.storeResult(i, value, rowExists);
}

bool BlockKernel::readsValuesOfRows() const {
  return llvm::any_of(walk.inputs, [&](const Access &access) {
    return !walk.hasCols(access) && !access.strides.empty();
  });
}

/// A value per row may lie where an operand with one lies: all threads of the
/// row have read it by then.
void BlockKernel::storeRowResults() {
  SmallVector<std::pair<unsigned, Value>> stores;
  for (unsigned i = 0; i < walk.results.size(); ++i)
    if (!walk.hasCols(walk.results[i]) && !walk.isChunked(i))
      stores.push_back({i, body.eval(yields[i]).value});
  if (stores.empty())
    return;
  if (geometry.block() > 32 && readsValuesOfRows())
    barrier();
  Value first = walk.numRows == 1 && walk.numCols == 1 ? isZero(thread)
                : geometry.threadsPerRow > 1           ? isZero(ofRowThread)
                                                       : Value();
  Value condition = both(first, rowExists);
  if (geometry.columnBlocks > 1)
    condition = both(condition, isZero(blockColumn));
  for (auto [i, value] : stores)
    body.storeResult(i, value, condition);
}

} // namespace meshwork::codegen
