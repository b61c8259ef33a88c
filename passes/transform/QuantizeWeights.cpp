// Weights that travel in 8 bits: rounded where they are stored, once a step,
// and made wide again where they are used. Every rank computes with what the 8
// bits stand for, also of the part that it stores itself.
//
// ZeRO++ (Wang et al., arXiv 2306.10209) has blocks of each rank's part. Here
// they are rows of the whole tensor, so that numbers do not depend on how many
// ranks share it.
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/StepFunctions.h"
#include "passes/transform/Passes.h"
#include "passes/transform/ReadInF32.h"
#include "passes/transform/Rounding.h"
#include "passes/transform/Scales.h"
#include <map>

using namespace mlir;
namespace meshwork::transform {
#define GEN_PASS_DEF_QUANTIZEWEIGHTSPASS
#include "passes/transform/Passes.h.inc"
namespace {
using namespace transformer;

constexpr float largestI8 = 127;

class WeightQuantization {
public:
  WeightQuantization(func::FuncOp function, spec::WeightType type)
      : function(function), type(type), builder(function.getContext()),
        readInF32(function), scales(function, {{}, /*weightsPerStep=*/true}) {}

  void run() {
    SmallVector<ParameterOp> all(function.getOps<ParameterOp>());
    for (ParameterOp weight : all)
      if (isMatrix(weight) && !isPrecise(weight))
        quantize(weight);
  }

private:
  /// Biases have several dims too, but are only mapped.
  static bool isMatrix(ParameterOp weight) {
    return tensorType(weight).getRank() > 1 &&
           !llvm::all_of(weight->getUsers(), llvm::IsaPred<MapOp>);
  }

  /// As of a router, whose scores decide.
  bool isPrecise(ParameterOp weight) const {
    return llvm::any_of(weight->getUsers(), [&](Operation *user) {
      return isa<ContractOp>(user) && !isBackward(user) &&
             readInF32.contains(user->getResult(0));
    });
  }

  void quantize(ParameterOp weight) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : weight.getResult().getUses())
      uses.push_back(&use);
    builder.setInsertionPointAfter(weight);
    Scale scale = type == spec::WeightType::fp8
                      ? scales.of(weight.getResult(), weight, weight.getName())
                      : scalesOfRows(weight);
    builder.setInsertionPointAfterValue(scale.scale);
    Value stored = scaledTo8(builder, weight.getResult(), scale.scale,
                             elementType(), Infinity::isInScale);
    setOfStep(stored.getDefiningOp());
    std::map<std::pair<bool, int64_t>, Value> wide;
    for (OpOperand *use : inOrder(uses)) {
      Operation *user = use->getOwner();
      Value &known = wide[{isBackward(user), layerOf(user).value_or(-1)}];
      if (!known)
        known = widened(stored, scale.inverse, weight, user);
      use->set(known);
      if (!makesGradient(user))
        note(user, weight);
    }
  }

  /// What the op is called after.
  static void note(Operation *op, ParameterOp weight) {
    op->setDiscardableAttr(facts::parameter, weight.getNameAttr());
  }
  static bool makesGradient(Operation *op) {
    return llvm::any_of(op->getUsers(), [](Operation *user) {
      return isa<AccumulateOp>(user);
    });
  }

  /// The first user of a pass and layer is where the wide copy is made.
  static SmallVector<OpOperand *> inOrder(SmallVector<OpOperand *> uses) {
    llvm::sort(uses, [](OpOperand *a, OpOperand *b) {
      return a->getOwner() != b->getOwner() &&
             a->getOwner()->isBeforeInBlock(b->getOwner());
    });
    return uses;
  }

  Value widened(Value stored, Value inverse, ParameterOp weight,
                Operation *user) {
    builder.setInsertionPoint(user);
    Value wide = scaledBack(builder, stored, inverse,
                            tensorType(weight).getElementType());
    inheritFacts(user, wide.getDefiningOp());
    setNotBefore(wide.getDefiningOp());
    note(wide.getDefiningOp(), weight);
    return wide;
  }

  Type elementType() {
    return type == spec::WeightType::fp8
               ? Type(builder.getType<Float8E4M3FNType>())
               : Type(builder.getI8Type());
  }

  /// An infinity or a NaN makes all of its row one, or a NaN.
  Scale scalesOfRows(ParameterOp weight) {
    auto last = DimsAttr::get(builder.getContext(),
                              dimsOf(weight).getNames().take_back(1));
    Value largest = largestMagnitude(builder, weight.getResult(), last);
    auto both = MapOp::create(
        builder, weight.getLoc(), {largest.getType(), largest.getType()},
        largest, [](OpBuilder &b, mlir::Location loc, ValueRange x) {
          ImplicitLocOpBuilder inner(loc, b);
          return factorsTo(inner, x[0], largestI8);
        });
    Operation *maximum = largest.getDefiningOp();
    Operation *magnitudes = maximum->getOperand(0).getDefiningOp();
    for (Operation *made : {magnitudes, maximum, both.getOperation()})
      setOfStep(made);
    return {both.getResult(0), both.getResult(1)};
  }

  func::FuncOp function;
  spec::WeightType type;
  OpBuilder builder;
  ReadInF32 readInF32;
  Scales scales;
};

struct QuantizeWeightsPass
    : impl::QuantizeWeightsPassBase<QuantizeWeightsPass> {
  using QuantizeWeightsPassBase::QuantizeWeightsPassBase;

  void runOnOperation() override {
    func::FuncOp microbatch = microbatchOf(getOperation());
    if (!microbatch)
      return signalPassFailure();
    if (type != spec::WeightType::compute)
      WeightQuantization(microbatch, type).run();
  }
};
} // namespace
} // namespace meshwork::transform
