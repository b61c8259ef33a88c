// Loops, addresses and memory of BodyEmitter.
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/codegen/BodyEmitter.h"

using namespace mlir;
namespace meshwork::codegen {

void BodyEmitter::begin(OpBuilder builder, Value pointerArray,
                        const DenseMap<Value, unsigned> &kept,
                        const Access &scratch) {
  args = pointerArray;
  scopes.push_back({builder, {}});
  Type pointer = args.getType();
  unsigned position = 0;
  for (const Access &access :
       llvm::concat<const Access>(walk.inputs, walk.results)) {
    Value slot =
        LLVM::GEPOp::create(builder, loc(), pointer, pointer, args,
                            LLVM::GEPArg(static_cast<int32_t>(position++)));
    bases[&access] =
        LLVM::LoadOp::create(builder, loc(), pointer, slot, /*alignment=*/8);
  }
  for (auto [value, row] : kept) {
    rows[row].access = scratch;
    keptValues[value] = &rows[row];
  }
  for (auto &[row, entry] : rows)
    bases[&entry.access] = LLVM::AllocaOp::create(
        builder, loc(), pointer, scratch.type.getElementType(),
        number(scratch.type.getNumElements()), /*alignment=*/64);
}

Value BodyEmitter::number(int64_t value) {
  Value &known = numbers[value];
  if (!known) {
    OpBuilder b = OpBuilder::atBlockBegin(scopes.front().builder.getBlock());
    known = arith::ConstantOp::create(b, loc(), b.getI64IntegerAttr(value));
  }
  return known;
}

void BodyEmitter::open() { scopes.push_back({builder(), {}}); }

/// Forgets what lies in the innermost scope.
void BodyEmitter::close() {
  scopes.pop_back();
  unsigned left = scopes.size();
  for (auto entry = values.begin(); entry != values.end(); ++entry)
    if (entry->second.scope >= left)
      values.erase(entry);
  llvm::erase_if(addresses,
                 [&](auto &entry) { return entry.first.scope >= left; });
}

BodyEmitter::Values BodyEmitter::loop(Value lower, Value upper, int64_t step,
                                      ValueRange carried, LoopBody body) {
  Value stepValue = number(step);
  auto loop =
      scf::ForOp::create(builder(), loc(), lower, upper, stepValue, carried);
  // Scopes that share this block continue before the loop until it is complete.
  Block::iterator after = std::next(loop->getIterator());
  SmallVector<unsigned> waiting;
  for (auto [i, scope] : llvm::enumerate(scopes))
    if (scope.builder.getInsertionBlock() == loop->getBlock() &&
        scope.builder.getInsertionPoint() == after)
      waiting.push_back(i);
  for (unsigned i : waiting)
    scopes[i].builder.setInsertionPoint(loop);
  OpBuilder inner(builder().getContext());
  if (Block *block = loop.getBody(); !block->empty())
    block->back().erase();
  inner.setInsertionPointToEnd(loop.getBody());
  scopes.push_back({inner, {}});
  Values next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(builder(), loc(), next);
  close();
  for (unsigned i : waiting)
    scopes[i].builder.setInsertionPointAfter(loop);
  return Values(loop.getResults());
}

unsigned BodyEmitter::scopeOf(StringAttr key) {
  for (unsigned i = scopes.size(); i > 0; --i)
    for (auto &[bound, position] : scopes[i - 1].positions)
      if (bound == key)
        return i - 1;
  return 0;
}

Emitted BodyEmitter::positionOf(StringAttr dim, int64_t rotation,
                                bool forElement) {
  unsigned scope = scopeOf(dim);
  OpBuilder &b = scopes[forElement ? ofElement() : scope].builder;
  for (auto &[key, position] : scopes[scope].positions)
    if (key == dim)
      return {rotated(b, key, position, rotation), scope};
  return {};
}

Value BodyEmitter::wordOf(int32_t value) {
  OpBuilder &outer = scopes.front().builder;
  return arith::ConstantOp::create(outer, loc(),
                                   outer.getI32IntegerAttr(value));
}

/// Within a segment a rotation is one offset, as the wrap lies at its end.
Value BodyEmitter::rotated(OpBuilder &b, StringAttr key, Value position,
                           int64_t rotation) {
  if (!rotation || key != walk.vectorKey())
    return position;
  int64_t offset =
      (place.segment + rotation) % walk.cols.back().size - place.segment;
  return arith::AddIOp::create(b, loc(), position, number(offset));
}

Emitted BodyEmitter::address(const Access &access, int64_t rotation) {
  Emitted result{bases.lookup(&access), 0};
  Type pointer = result.value.getType(), storage = storageOf(access.type);
  for (auto [i, scope] : llvm::enumerate(scopes)) {
    AddressKey key{&access, rotation, static_cast<unsigned>(i)};
    auto known = llvm::find_if(addresses,
                               [&](auto &entry) { return entry.first == key; });
    if (known != addresses.end()) {
      result = {known->second, static_cast<unsigned>(i)};
      continue;
    }
    Value offset;
    OpBuilder &b = scope.builder;
    for (auto &[name, position] : scope.positions) {
      int64_t stride = access.along(name);
      if (!stride)
        continue;
      Value step = rotated(b, name, position, rotation);
      if (stride != 1)
        step = arith::MulIOp::create(b, loc(), step, number(stride));
      offset = offset
                   ? arith::AddIOp::create(b, loc(), offset, step).getResult()
                   : step;
    }
    if (!offset)
      continue;
    result = {LLVM::GEPOp::create(b, loc(), pointer, storage, result.value,
                                  LLVM::GEPArg(offset)),
              static_cast<unsigned>(i)};
    addresses.push_back({key, result.value});
  }
  return result;
}

Value BodyEmitter::splat(OpBuilder &b, Value value) {
  if (isa<VectorType>(value.getType()))
    return value;
  auto type = VectorType::get({place.width}, value.getType());
  if (auto constant = value.getDefiningOp<arith::ConstantOp>())
    return arith::ConstantOp::create(
        b, loc(), DenseElementsAttr::get(type, Attribute(constant.getValue())));
  return vector::BroadcastOp::create(b, loc(), type, value);
}

Value BodyEmitter::activeMask(OpBuilder &b) {
  if (place.active == place.width)
    return {};
  SmallVector<bool> bits(place.width);
  std::fill_n(bits.begin(), place.active, true);
  auto type = VectorType::get({place.width}, b.getI1Type());
  return arith::ConstantOp::create(b, loc(),
                                   DenseElementsAttr::get(type, bits));
}

Value BodyEmitter::lanes(OpBuilder &b, Type element, int64_t step) {
  SmallVector<Attribute> steps;
  for (int64_t i = 0; i < place.width; ++i)
    steps.push_back(IntegerAttr::get(element, i * step));
  return arith::ConstantOp::create(
      b, loc(),
      DenseElementsAttr::get(cast<VectorType>(vectorOf(element)), steps));
}

Value BodyEmitter::pointers(OpBuilder &b, Value address, Type storage,
                            int64_t step) {
  Type pointers = VectorType::get({place.width}, address.getType());
  return LLVM::GEPOp::create(b, loc(), pointers, storage, address,
                             LLVM::GEPArg(lanes(b, b.getI64Type(), step)));
}

Value BodyEmitter::loadStorage(OpBuilder &b, const Access &access, Emitted from,
                               Type storage) {
  int64_t step = walk.cols.empty() ? 0 : access.along(walk.vectorKey());
  unsigned bytes = storage.getIntOrFloatBitWidth() / 8;
  if (!step || place.width == 1)
    return LLVM::LoadOp::create(b, loc(), storage, from.value, bytes);
  Type type = VectorType::get({place.width}, storage);
  Value mask = activeMask(b);
  if (step == 1 && !mask)
    return LLVM::LoadOp::create(b, loc(), type, from.value, bytes);
  Value zero = arith::ConstantOp::create(b, loc(), b.getZeroAttr(type));
  if (step == 1)
    return LLVM::MaskedLoadOp::create(b, loc(), type, from.value, mask, zero,
                                      bytes);
  if (!mask)
    mask = arith::ConstantOp::create(
        b, loc(),
        DenseElementsAttr::get(VectorType::get({place.width}, b.getI1Type()),
                               true));
  return LLVM::masked_gather::create(b, loc(), type,
                                     pointers(b, from.value, storage, step),
                                     mask, zero, b.getI32IntegerAttr(bytes));
}

Emitted BodyEmitter::load(const Access &access, int64_t rotation) {
  Emitted from = address(access, rotation);
  OpBuilder &b = scopes[from.scope].builder;
  Value stored = loadStorage(b, access, from, storageOf(access.type));
  return {fromStorage(b, loc(), stored, access.type), from.scope};
}

Value BodyEmitter::loadWritten(const Access &access) {
  OpBuilder &b = builder();
  Value stored =
      loadStorage(b, access, address(access, 0), storageOf(access.type));
  return fromStorage(b, loc(), stored, access.type);
}

void BodyEmitter::store(const Access &access, Value value) {
  OpBuilder &b = builder();
  Value to = address(access, 0).value;
  int64_t step = walk.cols.empty() ? 0 : access.along(walk.vectorKey());
  Type storage = storageOf(access.type);
  unsigned bytes = storage.getIntOrFloatBitWidth() / 8;
  if (step)
    value = splat(b, value);
  Value stored = toStorage(b, loc(), value, access.type, target);
  Value mask = step ? activeMask(b) : Value();
  if (step <= 1 && !mask) {
    LLVM::StoreOp::create(b, loc(), stored, to, bytes);
  } else if (step == 1) {
    LLVM::MaskedStoreOp::create(b, loc(), stored, to, mask, bytes);
  } else {
    if (!mask)
      mask = arith::ConstantOp::create(
          b, loc(),
          DenseElementsAttr::get(VectorType::get({place.width}, b.getI1Type()),
                                 true));
    LLVM::masked_scatter::create(b, loc(), stored,
                                 pointers(b, to, storage, step), mask,
                                 b.getI32IntegerAttr(bytes));
  }
}

} // namespace meshwork::codegen
