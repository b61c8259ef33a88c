// How a thread stores its elements: each with a condition where it may stand
// past the end of a row or of all rows.
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/codegen/BodyEmitter.h"
#include "passes/codegen/Narrow.h"
#include "passes/codegen/gpu/ThreadBody.h"

using namespace mlir;
namespace meshwork::codegen {

void ThreadBody::storeAt(OpBuilder &b, unsigned number, Value to,
                         Value stored) {
  Type storage = storageOf(access(number).type);
  unsigned bytes = storage.getIntOrFloatBitWidth() / 8;
  int64_t step = walk.cols.empty() ? 0 : access(number).along(walk.vectorKey());
  if (!isa<VectorType>(stored.getType()) || step == 1) {
    bool isWide = isa<VectorType>(stored.getType());
    LLVM::StoreOp::create(
        b, loc(), stored, to,
        isWide ? alignmentOf(walk, geometry, access(number), baseBytes[number])
               : bytes);
    return;
  }
  for (int64_t lane = 0; lane < geometry.width; ++lane) {
    Value at = elementAt(b, to, storage, lane * step);
    LLVM::StoreOp::create(
        b, loc(), vector::ExtractOp::create(b, loc(), stored, lane), at, bytes);
  }
}

/// The ends of a row whose vectors are shifted.
void ThreadBody::storeLanes(OpBuilder &b, unsigned number, Value to,
                            Value stored) {
  Type storage = storageOf(access(number).type);
  unsigned bytes = storage.getIntOrFloatBitWidth() / 8;
  for (int64_t lane = 0; lane < geometry.width; ++lane) {
    Value exists = vector::ExtractOp::create(b, loc(), place->lanes, lane);
    scf::IfOp::create(b, loc(), exists, [&](OpBuilder &inner, Location) {
      Value at = LLVM::GEPOp::create(inner, loc(), to.getType(), storage, to,
                                     LLVM::GEPArg(static_cast<int32_t>(lane)));
      LLVM::StoreOp::create(
          inner, loc(), vector::ExtractOp::create(inner, loc(), stored, lane),
          at, bytes);
      scf::YieldOp::create(inner, loc());
    });
  }
}

/// Two f32 in one instruction, the first in the high byte (PTX ISA, cvt with
/// packing): to nearest even, what is beyond the range to its end, NaN to NaN.
static Value packFloat8(OpBuilder &b, Location loc, Value high, Value low,
                        Type element) {
  StringRef text = isa<Float8E5M2Type>(element)
                       ? "cvt.rn.satfinite.e5m2x2.f32 $0, $1, $2;"
                       : "cvt.rn.satfinite.e4m3x2.f32 $0, $1, $2;";
  return LLVM::InlineAsmOp::create(
             b, loc, b.getI16Type(), ValueRange{high, low}, text, "=h,f,f",
             /*has_side_effects=*/false,
             /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
             LLVM::AsmDialectAttr(), ArrayAttr())
      .getResult(0);
}

static Value toFloat8OfPtx(OpBuilder &b, Location loc, Value value,
                           Type element) {
  auto vector = dyn_cast<VectorType>(value.getType());
  if (!vector || vector.getNumElements() % 2) {
    auto one = [&](Value x) -> Value {
      Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
      return arith::TruncIOp::create(b, loc, b.getI8Type(),
                                     packFloat8(b, loc, zero, x, element));
    };
    if (!vector)
      return one(value);
    Value all = LLVM::UndefOp::create(b, loc, vector.clone(b.getI8Type()));
    for (int64_t i = 0; i < vector.getNumElements(); ++i)
      all = vector::InsertOp::create(
          b, loc, one(vector::ExtractOp::create(b, loc, value, i)), all, i);
    return all;
  }
  int64_t pairs = vector.getNumElements() / 2;
  auto type = VectorType::get({pairs}, b.getI16Type());
  Value all = LLVM::UndefOp::create(b, loc, type);
  for (int64_t i = 0; i < pairs; ++i) {
    Value low = vector::ExtractOp::create(b, loc, value, 2 * i),
          high = vector::ExtractOp::create(b, loc, value, 2 * i + 1);
    all = vector::InsertOp::create(
        b, loc, packFloat8(b, loc, high, low, element), all, i);
  }
  return vector::BitCastOp::create(b, loc, vector.clone(b.getI8Type()), all);
}

Value ThreadBody::toStorage(OpBuilder &b, Value value, Type element) {
  if (transformer::isF8(element))
    return toFloat8OfPtx(b, loc(), value, element);
  if (element.isInteger(8))
    return toInt8(b, loc(), value);
  if (!element.isBF16())
    return value;
  Value cut = arith::TruncFOp::create(
      b, loc(), typeLike(value.getType(), b.getBF16Type()), value);
  return arith::BitcastOp::create(
      b, loc(), typeLike(value.getType(), b.getI16Type()), cut);
}

void ThreadBody::storeResult(unsigned i, Value value, Value condition) {
  unsigned number = walk.inputs.size() + i;
  OpBuilder &b = builders[ofBoth];
  bool hasCols = walk.hasCols(walk.results[i]);
  if (hasCols && isVector())
    value = spread(b, value);
  value = toStorage(b, value, walk.results[i].type.getElementType());
  Value to = address(number, 0).value;
  auto write = [&](OpBuilder &at) {
    if (!hasCols || !place || !place->lanes)
      return storeAt(at, number, to, value);
    Value isWhole = vector::ReductionOp::create(
        at, loc(), vector::CombiningKind::AND, place->lanes);
    scf::IfOp::create(
        at, loc(), isWhole,
        [&](OpBuilder &inner, Location) {
          storeAt(inner, number, to, value);
          scf::YieldOp::create(inner, loc());
        },
        [&](OpBuilder &inner, Location) {
          storeLanes(inner, number, to, value);
          scf::YieldOp::create(inner, loc());
        });
  };
  storeWhere(condition, hasCols && place ? place->active : Value(), write);
}

void ThreadBody::storeWhere(Value condition, Value active,
                            llvm::function_ref<void(OpBuilder &)> write) {
  OpBuilder &b = builders[ofBoth];
  if (condition && active)
    condition = arith::AndIOp::create(b, loc(), condition, active);
  else
    condition = condition ? condition : active;
  if (!condition)
    return write(b);
  scf::IfOp::create(b, loc(), condition, [&](OpBuilder &inner, Location) {
    write(inner);
    scf::YieldOp::create(inner, loc());
  });
}

} // namespace meshwork::codegen
