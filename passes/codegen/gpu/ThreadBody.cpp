// Values of ThreadBody. Sums: ThreadSums.cpp.
#include "passes/codegen/gpu/ThreadBody.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/codegen/BodyEmitter.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;

Emitted ThreadBody::eval(Value value, int64_t rotation) {
  for (int at : {-1, place ? static_cast<int>(place->number) : 0})
    if (auto known = values.find({value, rotation, at}); known != values.end())
      return known->second;
  Emitted result = compute(value, rotation);
  return values[{value, rotation,
                 result.scope & ofPlace ? static_cast<int>(place->number)
                                        : -1}] = result;
}

/// What a loop over rows keeps is kept as it is stored, in fewer registers.
Emitted ThreadBody::loadInput(unsigned input, int64_t rotation) {
  auto [stored, scope] = loadStored(input, rotation);
  if (scope == ofPlace)
    scope = ofBoth;
  return {fromStorageOf(builders[scope], stored, access(input).type), scope};
}

Emitted ThreadBody::computeInBody(Operation *op, int64_t rotation) {
  if (place && place->hasNoMatch && !rotation &&
      llvm::any_of(matches, [&](const ColumnMatch &match) {
        return match.compare == op;
      })) // Only here, so not known for other places.
    return {arith::ConstantOp::create(builders[ofBoth], loc(),
                                      builders[ofBoth].getBoolAttr(false)),
            ofBoth};
  return computeOver(op, rotation);
}

/// Multiplications and additions may become one rounding; quotients and roots
/// may be the machine's approximations (README.md), and exponentials of which
/// nobody sees the last bits. Nothing else moves.
void ThreadBody::relax(Operation *made, Operation *op) {
  auto fast = dyn_cast<arith::ArithFastMathInterface>(made);
  if (!fast)
    return;
  auto power = dyn_cast_or_null<math::ExpOp>(op);
  arith::FastMathFlags flags = arith::FastMathFlags::contract;
  if (isa<arith::DivFOp, math::SqrtOp, math::RsqrtOp>(made) ||
      (power && hidesLastBits(power, walk)))
    flags = flags | arith::FastMathFlags::afn;
  made->setAttr(fast.getFastMathAttrName(),
                arith::FastMathFlagsAttr::get(made->getContext(), flags));
}

Value ThreadBody::inverseOf(OpBuilder &b, Value divisor) {
  Value inverse = arith::DivFOp::create(b, loc(), constant(1), divisor);
  relax(inverse.getDefiningOp(), nullptr);
  return inverse;
}

Value ThreadBody::lanes(OpBuilder & /*b*/, Type element, int64_t step) {
  OpBuilder b = OpBuilder::atBlockBegin(entry);
  SmallVector<Attribute> steps;
  for (int64_t i = 0; i < geometry.width; ++i)
    steps.push_back(IntegerAttr::get(element, i * step));
  return arith::ConstantOp::create(
      b, loc(),
      DenseElementsAttr::get(cast<VectorType>(vectorOf(element)), steps));
}

Value ThreadBody::wideOf(OpBuilder &b, int64_t value) {
  return arith::ConstantOp::create(b, loc(), b.getI64IntegerAttr(value));
}

/// Draws for up to four elements at once: longer vectors would take the CPU's
/// way of multiplying in pairs.
static Value drawWords(OpBuilder &b, Location loc, Value position,
                       const std::array<Value, 4> &uniforms) {
  auto vectors = dyn_cast<VectorType>(position.getType());
  int64_t width = vectors ? vectors.getNumElements() : 1;
  if (width > 4) {
    auto all = llvm::to_vector(llvm::seq<int64_t>(0, width));
    ArrayRef<int64_t> low = ArrayRef(all).take_front(width / 2),
                      high = ArrayRef(all).drop_front(width / 2);
    Value first = drawWords(
        b, loc, vector::ShuffleOp::create(b, loc, position, position, low),
        uniforms);
    Value second = drawWords(
        b, loc, vector::ShuffleOp::create(b, loc, position, position, high),
        uniforms);
    return vector::ShuffleOp::create(b, loc, first, second, all);
  }
  Type words = vectors ? Type(vectors.clone(b.getI32Type())) : b.getI32Type();
  auto spread = [&](Value value) -> Value {
    return vectors
               ? vector::BroadcastOp::create(b, loc, words, value).getResult()
               : value;
  };
  auto [step, zero, seed, stream] = uniforms;
  Value high = arith::ShRUIOp::create(
      b, loc, position, constantOf(b, loc, position.getType(), 32));
  return philoxWord(b, loc,
                    {arith::TruncIOp::create(b, loc, words, position),
                     arith::TruncIOp::create(b, loc, words, high), spread(step),
                     spread(zero)},
                    {spread(seed), spread(stream)});
}

Value ThreadBody::drawWord(OpBuilder &b, Value positions, Value seed,
                           Value step, Value stream) {
  return drawWords(b, loc(), positions, {step, wordOf(0), seed, stream});
}

/// What `value` changes with, sums over chunks aside.
unsigned ThreadBody::scopeOf(Value value) {
  Operation *def = value.getDefiningOp();
  unsigned scope = uniform;
  if (def) {
    for (Value operand : def->getOperands())
      scope |= scopeOf(operand);
    def->walk([&](Operation *inner) {
      scope |= isa<IndexOp, DrawOpInterface>(inner) ? ofElement() : uniform;
    });
    return scope;
  }
  const Access &access = walk.inputs[cast<BlockArgument>(value).getArgNumber()];
  for (const LoopDim &dim : walk.rows)
    scope |= access.along(dim.key) ? ofRow : uniform;
  return scope | (walk.hasCols(access) ? ofPlace : uniform);
}

} // namespace meshwork::codegen
