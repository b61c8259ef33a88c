// Accumulation of what no kernel adds up where it makes it: old + value, in i32
// where that is to be exact, or the larger of the two.
#include "dialects/transformer/Facts.h"
#include "passes/fusion/Passes.h"

using namespace mlir;
namespace meshwork::fusion {
#define GEN_PASS_DEF_FUSEACCUMULATIONSPASS
#include "passes/fusion/Passes.h.inc"
namespace {
using namespace transformer;

struct FuseAccumulationsPass
    : impl::FuseAccumulationsPassBase<FuseAccumulationsPass> {
  void runOnOperation() override {
    Type gradientType = gradientTypeOf(getOperation());
    SmallVector<AccumulateOp> accumulations;
    getOperation().walk([&](AccumulateOp op) {
      if (op.getExact() || !addsUpItself(op.getValue()))
        accumulations.push_back(op);
    });
    for (AccumulateOp op : accumulations)
      rewrite(op, op.getKind() == StateKind::gradient ? gradientType
                  : op.getExact() ? Type(IntegerType::get(&getContext(), 32))
                                  : Type(Float32Type::get(&getContext())));
  }

  /// Whether what makes `value` can add it to what is there.
  static bool addsUpItself(Value value) {
    auto maker = value.getDefiningOp<TensorOpInterface>();
    return value.hasOneUse() && maker &&
           maker.addsUp(cast<OpResult>(value).getResultNumber());
  }

  static Value combined(ImplicitLocOpBuilder &b, AccumulateOp op, Value old,
                        Value value) {
    return buildMap(b, b.getLoc(), old.getType(), {old, value},
                    [&](ImplicitLocOpBuilder &i, ValueRange x) -> Value {
                      if (op.getExact())
                        return arith::AddIOp::create(
                            i, x[0],
                            arith::FPToSIOp::create(i, i.getI32Type(), x[1]));
                      if (op.getKind() == StateKind::magnitude)
                        return arith::MaximumFOp::create(i, x[0], x[1]);
                      return arith::AddFOp::create(i, x[0], x[1]);
                    });
  }

  /// Adds only where the parts lie: the rest of an unslice is zero.
  static void addParts(ImplicitLocOpBuilder &b, AccumulateOp op, Value old,
                       UnsliceOp value) {
    for (auto [part, offset] :
         llvm::zip_equal(value.getParts(), value.getOffsets())) {
      Type type = withElement(part.getType(), tensorType(old).getElementType());
      Value before = SliceOp::create(b, type, old, value.getDimAttr(), offset);
      AssignOp::create(b, op.getKey(), combined(b, op, before, part),
                       value.getDimAttr(), offset);
    }
  }

  static void rewrite(AccumulateOp op, Type element) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    Value old = StateOp::create(
        b, withElement(op.getValue().getType(), element), op.getKey());
    auto unslice = op.getValue().getDefiningOp<UnsliceOp>();
    if (unslice)
      addParts(b, op, old, unslice);
    else
      AssignOp::create(b, op.getKey(), combined(b, op, old, op.getValue()));
    op.erase();
    if (unslice && unslice->use_empty())
      unslice.erase();
  }
};
} // namespace
} // namespace meshwork::fusion
