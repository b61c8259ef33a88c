// Where a thread's elements are, and how it loads them. A thread past the end
// of a row or of all rows walks an element that exists, so loads need no
// condition and cost no traffic.
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/codegen/BodyEmitter.h"
#include "passes/codegen/gpu/ThreadBody.h"

using namespace mlir;
namespace meshwork::codegen {

ThreadBody::ThreadBody(const Walk &walk, const Geometry &geometry,
                       ArrayRef<int64_t> baseBytes)
    : ValueEmitter(walk), geometry(geometry),
      matches(codegen::columnMatches(walk)), baseBytes(baseBytes) {}

void ThreadBody::begin(Block *block, ValueRange pointers) {
  entry = block;
  builders.assign(4, OpBuilder::atBlockEnd(block));
  bases.assign(pointers.begin(), pointers.end());
}

Value ThreadBody::number(int64_t value) {
  Value &known = numbers[value];
  if (!known) {
    OpBuilder b = OpBuilder::atBlockBegin(entry);
    known = arith::ConstantOp::create(b, loc(),
                                      b.getIntegerAttr(countType(), value));
  }
  return known;
}

Type ThreadBody::countType() {
  return IntegerType::get(walk.op->getContext(), geometry.countsFar ? 64 : 32);
}

Value ThreadBody::toCount(OpBuilder &b, Value value) {
  return geometry.countsFar
             ? arith::ExtSIOp::create(b, loc(), countType(), value)
             : value;
}

Value ThreadBody::toI64(OpBuilder &b, Value position) {
  return geometry.countsFar
             ? position
             : arith::ExtSIOp::create(b, loc(), b.getI64Type(), position);
}

Value ThreadBody::elementAt(OpBuilder &b, Value pointer, Type storage,
                            int64_t offset) {
  if (llvm::isInt<LLVM::kGEPConstantBitWidth>(offset))
    return LLVM::GEPOp::create(b, loc(), pointer.getType(), storage, pointer,
                               LLVM::GEPArg(static_cast<int32_t>(offset)));
  Value by = arith::ConstantOp::create(b, loc(), b.getI64IntegerAttr(offset));
  return LLVM::GEPOp::create(b, loc(), pointer.getType(), storage, pointer,
                             LLVM::GEPArg(by));
}

Value ThreadBody::wordOf(int32_t value) {
  OpBuilder b = OpBuilder::atBlockBegin(entry);
  return arith::ConstantOp::create(b, loc(), b.getI32IntegerAttr(value));
}

Value ThreadBody::constant(float value) {
  OpBuilder b = OpBuilder::atBlockBegin(entry);
  return arith::ConstantOp::create(b, loc(), b.getF32FloatAttr(value));
}

Value ThreadBody::spread(OpBuilder &b, Value value) {
  if (!isVector() || isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(b, loc(), vectorOf(value.getType()),
                                     value);
}

ThreadBody::Values ThreadBody::loop(unsigned changes, Value lower, Value upper,
                                    int64_t step, ValueRange carried,
                                    LoopBody body) {
  auto loop = scf::ForOp::create(builders[ofBoth], loc(), lower, upper,
                                 number(step), carried);
  emitInside(changes, loop, loop.getBody(), [&] {
    return body(loop.getInductionVar(), loop.getRegionIterArgs());
  });
  return Values(loop.getResults());
}

ThreadBody::Values ThreadBody::onlyIf(unsigned changes, Value condition,
                                      ValueRange carried,
                                      llvm::function_ref<Values()> body) {
  auto branch =
      scf::IfOp::create(builders[ofBoth], loc(), TypeRange(carried), condition,
                        /*withElseRegion=*/!carried.empty());
  emitInside(changes, branch, branch.thenBlock(), body);
  if (!carried.empty()) {
    OpBuilder otherwise = OpBuilder::atBlockEnd(branch.elseBlock());
    scf::YieldOp::create(otherwise, loc(), carried);
  }
  return Values(branch.getResults());
}

void ThreadBody::emitInside(unsigned changes, Operation *op, Block *block,
                            llvm::function_ref<Values()> body) {
  SmallVector<OpBuilder, 4> before(builders);
  for (unsigned scope = 0; scope < 4; ++scope)
    if (scope & changes)
      builders[scope].setInsertionPointToEnd(block);
    else if (builders[scope].getInsertionBlock() == op->getBlock() &&
             builders[scope].getInsertionPoint() ==
                 std::next(op->getIterator()))
      builders[scope].setInsertionPoint(op);
  if (!block->empty())
    block->back().erase();
  Values next = body();
  scf::YieldOp::create(builders[ofBoth], loc(), next);
  builders = before;
  auto isInside = [&](const Emitted &value) {
    return (value.scope & changes) != 0;
  };
  for (auto known = values.begin(); known != values.end(); ++known)
    if (isInside(known->second))
      values.erase(known);
  std::erase_if(loads, [&](auto &known) { return isInside(known.second); });
}

Emitted ThreadBody::positionOf(StringAttr key, int64_t rotation,
                               bool /*forElement*/) {
  for (auto &[bound, position] : llvm::reverse(verticalPositions))
    if (bound == key)
      return {position, uniform};
  for (auto &[bound, position] : rowPositions)
    if (bound == key)
      return {position, ofRow};
  if (place)
    for (auto &[bound, position] : place->positions)
      if (bound == key)
        return {key == walk.vectorKey() ? rotated(position, rotation)
                                        : position,
                ofPlace};
  return {};
}

/// Rolls and widths share a divisor, so a vector wraps as a whole.
Value ThreadBody::rotated(Value position, int64_t rotation) {
  if (!rotation)
    return position;
  OpBuilder &b = builders[ofPlace];
  Value size = number(walk.cols.back().size);
  Value moved = arith::AddIOp::create(b, loc(), position, number(rotation));
  Value isPast =
      arith::CmpIOp::create(b, loc(), arith::CmpIPredicate::sge, moved, size);
  return arith::SelectOp::create(
      b, loc(), isPast, arith::SubIOp::create(b, loc(), moved, size), moved);
}

/// The row's part of an address first: places of a row share it.
Emitted ThreadBody::address(unsigned number, int64_t rotation) {
  Emitted result{bases[number], uniform};
  Type storage = storageOf(access(number).type);
  auto move = [&](StringAttr key, Value position, unsigned scope) {
    int64_t stride = access(number).along(key);
    if (!stride)
      return;
    OpBuilder &b = builders[scope];
    Value offset = toI64(b, key == walk.vectorKey() && scope == ofPlace
                                ? rotated(position, rotation)
                                : position);
    if (stride != 1) {
      Value step =
          arith::ConstantOp::create(b, loc(), b.getI64IntegerAttr(stride));
      offset = arith::MulIOp::create(b, loc(), offset, step);
    }
    result.scope |= scope;
    result.value = LLVM::GEPOp::create(builders[result.scope], loc(),
                                       result.value.getType(), storage,
                                       result.value, LLVM::GEPArg(offset));
  };
  for (auto &[key, position] : verticalPositions)
    move(key, position, uniform);
  for (auto &[key, position] : rowPositions)
    move(key, position, ofRow);
  if (place)
    for (auto &[key, position] : place->positions)
      move(key, position, ofPlace);
  return result;
}

/// One access of up to 16 bytes each, as its alignment allows; elements that do
/// not lie side by side are taken one by one.
Value ThreadBody::loadAt(OpBuilder &b, unsigned number, Value from) {
  Type storage = storageOf(access(number).type);
  unsigned bytes = storage.getIntOrFloatBitWidth() / 8;
  int64_t step = walk.cols.empty() ? 0 : access(number).along(walk.vectorKey());
  if (!step || !isVector())
    return LLVM::LoadOp::create(b, loc(), storage, from, bytes);
  if (step == 1)
    return LLVM::LoadOp::create(
        b, loc(), vectorOf(storage), from,
        alignmentOf(walk, geometry, access(number), baseBytes[number]));
  Value all = LLVM::UndefOp::create(b, loc(), vectorOf(storage));
  for (int64_t lane = 0; lane < geometry.width; ++lane) {
    Value at = elementAt(b, from, storage, lane * step);
    Value one = LLVM::LoadOp::create(b, loc(), storage, at, bytes);
    all = vector::InsertOp::create(b, loc(), one, all, lane);
  }
  return all;
}

/// Two bf16 of a register to two f32, an instruction each: as integers of 16
/// bits they would first be taken apart.
Value ThreadBody::fromStorageOf(OpBuilder &b, Value stored,
                                RankedTensorType type) {
  auto vector = dyn_cast<VectorType>(stored.getType());
  if (!type.getElementType().isBF16() || !vector || vector.getNumElements() % 2)
    return fromStorage(b, loc(), stored, type);
  int64_t pairs = vector.getNumElements() / 2;
  auto words = VectorType::get({pairs}, b.getI32Type());
  Value both = vector::BitCastOp::create(b, loc(), words, stored);
  Value low = arith::ShLIOp::create(b, loc(), both,
                                    constantOf(b, loc(), words, 16)),
        high = arith::AndIOp::create(
            b, loc(), both,
            constantOf(b, loc(), words, static_cast<int32_t>(0xffff0000)));
  SmallVector<int64_t> order;
  for (int64_t i = 0; i < pairs; ++i)
    order.append({i, pairs + i});
  return arith::BitcastOp::create(
      b, loc(), vector.clone(b.getF32Type()),
      vector::ShuffleOp::create(b, loc(), low, high, order));
}

Emitted ThreadBody::loadStored(unsigned number, int64_t rotation) {
  for (int at : {-1, place ? static_cast<int>(place->number) : 0})
    if (auto known = loads.find({number, rotation, at}); known != loads.end())
      return known->second;
  Emitted result = address(number, rotation);
  result.value = loadAt(builders[result.scope], number, result.value);
  return loads[{number, rotation,
                result.scope & ofPlace ? static_cast<int>(place->number)
                                       : -1}] = result;
}

Value ThreadBody::matchingColumn(const ColumnMatch &match) {
  Value column = eval(match.column).value;
  OpBuilder &b = builders[ofRow];
  if (match.offset)
    column = arith::SubIOp::create(b, loc(), column, eval(match.offset).value);
  return toCount(b, column);
}

Value ThreadBody::pick(const Pick &pick) {
  Value column = matchingColumn(pick.match);
  Value row = address(pick.input, 0).value;
  OpBuilder &b = builders[ofRow];
  Value size = number(walk.numCols);
  Value exists =
      arith::CmpIOp::create(b, loc(), arith::CmpIPredicate::ult, column, size);
  Value there = arith::SelectOp::create(b, loc(), exists, column, number(0));
  Value offset =
      geometry.countsFar
          ? there
          : arith::ExtUIOp::create(b, loc(), b.getI64Type(), there).getResult();
  const Access &from = access(pick.input);
  Value step = arith::ConstantOp::create(
      b, loc(), b.getI64IntegerAttr(from.along(walk.vectorKey())));
  offset = arith::MulIOp::create(b, loc(), offset, step);
  Type storage = storageOf(from.type);
  Value at = LLVM::GEPOp::create(b, loc(), row.getType(), storage, row,
                                 LLVM::GEPArg(offset));
  Value stored = LLVM::LoadOp::create(b, loc(), storage, at,
                                      storage.getIntOrFloatBitWidth() / 8);
  return arith::SelectOp::create(
      b, loc(), exists, fromStorage(b, loc(), stored, from.type), constant(0));
}

bool ThreadBody::isVectorOfBf16(unsigned input) const {
  const Access &from = walk.inputs[input];
  return isVector() && geometry.width % 2 == 0 &&
         from.type.getElementType().isBF16() &&
         from.along(walk.vectorKey()) == 1;
}

Value ThreadBody::bf16At(unsigned input) {
  OpBuilder &b = builders[ofBoth];
  return arith::BitcastOp::create(b, loc(), vectorOf(b.getBF16Type()),
                                  loadStored(input, 0).value);
}

/// Whether the walk says where in the tensor a thread is; not along dims of
/// vertical sums, which bind them.
static bool isWithinWalk(const Walk &walk, const Access &access) {
  transformer::FusedOp op = walk.op;
  return llvm::all_of(
      transformer::dimsOf(access.type).getNames(), [&](StringAttr name) {
        return !access.along(name) || op.getRows().find(name) >= 0 ||
               op.getCols().find(name) >= 0;
      });
}

void ThreadBody::preload() {
  for (unsigned i = 0; i < walk.inputs.size(); ++i)
    if (walk.hasCols(walk.inputs[i]) && isWithinWalk(walk, walk.inputs[i]))
      loadStored(i, 0);
}

ThreadBody::Values ThreadBody::takeRow() {
  loadedRow.clear();
  Values loaded;
  for (auto &[key, value] : loads)
    if (value.scope & ofRow) {
      loadedRow[key] = value;
      loaded.push_back(value.value);
    }
  for (auto &[key, value] : loadedRow)
    loads.erase(key);
  return loaded;
}

void ThreadBody::giveRow(ValueRange loaded) {
  for (auto [known, value] : llvm::zip_equal(loadedRow, loaded))
    loads[known.first] = {value, known.second.scope};
}

Value ThreadBody::loadResult(unsigned i) {
  unsigned number = walk.inputs.size() + i;
  Emitted from = address(number, 0);
  OpBuilder &b = builders[ofBoth];
  return fromStorageOf(b, loadAt(b, number, from.value), walk.results[i].type);
}

unsigned ThreadBody::firstAlongColumns() const {
  unsigned number = 0;
  while (!walk.hasCols(access(number)))
    ++number;
  return number;
}

bool ThreadBody::isEverMisaligned() const {
  const Access &first = access(firstAlongColumns());
  return llvm::any_of(walk.rows, [&](const LoopDim &row) {
    return first.along(row.key) % geometry.width != 0;
  });
}

Value ThreadBody::misalignment() {
  unsigned number = firstAlongColumns();
  OpBuilder &b = builders[ofRow];
  Value sum = this->number(0);
  for (const LoopDim &row : walk.rows)
    if (int64_t stride = access(number).along(row.key) % geometry.width) {
      Value part = arith::MulIOp::create(b, loc(), positionOf(row.key, 0).value,
                                         this->number(stride));
      sum = arith::AddIOp::create(b, loc(), sum, part);
    }
  return arith::AndIOp::create(b, loc(), sum, this->number(geometry.width - 1));
}

} // namespace meshwork::codegen
