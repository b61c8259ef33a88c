// Counts how often each expert is chosen, tells how evenly and how many choices
// were dropped, and moves biases that make it even. A count is added up where
// choices are made, so what runs again does not count twice. The rule for
// biases is that of DeepSeek-V3 (arXiv 2412.19437) as Megatron has it, by the
// sign alone.
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/StepFunctions.h"
#include "passes/analysis/SpecKey.h"
#include "passes/transform/Passes.h"
#include "passes/transform/Routers.h"

using namespace mlir;
namespace meshwork::transform {
#define GEN_PASS_DEF_COUNTCHOICESPASS
#include "passes/transform/Passes.h.inc"
namespace {
using namespace transformer;

constexpr StateKey counted{StateKind::metric, "expert_counts"},
    told{StateKind::metric, "expert_load"},
    countedDrops{StateKind::metric, "dropped_counts"},
    toldDrops{StateKind::metric, "dropped"};
/// Dims of what is counted, which no rule of a spec names.
constexpr llvm::StringLiteral ofRouters = "routers", ofChoices = "candidates",
                              ofLoad = "load";

Value number(ImplicitLocOpBuilder &b, double value) {
  return arith::ConstantOp::create(
      b, b.getF32FloatAttr(static_cast<float>(value)));
}

/// Whether `index`, an i32, is below `end`, in the body of a map.
Value isBelow(ImplicitLocOpBuilder &b, Value index, int64_t end) {
  return arith::CmpIOp::create(
      b, arith::CmpIPredicate::slt, index,
      arith::ConstantOp::create(
          b, b.getI32IntegerAttr(static_cast<int32_t>(end))));
}

Value indexAlong(ImplicitLocOpBuilder &b, StringRef dim) {
  return IndexOp::create(b, b.getI32Type(), b.getStringAttr(dim));
}

/// What is added to a router's scores before the largest are chosen; null:
/// nothing that is not trained.
ParameterOp biasOf(Operation *router) {
  if (Operation *scores = router->getOperand(0).getDefiningOp())
    for (Value operand : scores->getOperands())
      if (auto parameter = operand.getDefiningOp<ParameterOp>();
          parameter && parameter.getUntrained())
        return parameter;
  return {};
}

/// What drops choices of `router`; null: nothing does.
LimitChoicesOp limitBehind(Operation *router) {
  for (Operation *user : router->getResult(0).getUsers())
    if (auto limit = dyn_cast<LimitChoicesOp>(user))
      return limit;
  return {};
}

/// How many choices `limit` drops.
Value dropsOf(ImplicitLocOpBuilder &b, LimitChoicesOp limit) {
  Value drops =
      buildMap(b, b.getLoc(), withElement(limit.getType(), b.getF32Type()),
               {limit.getChoices(), limit.getResult()},
               [](ImplicitLocOpBuilder &i, ValueRange x) -> Value {
                 Value isGone = arith::SelectOp::create(
                     i, isBelow(i, x[1], 0), number(i, 1), number(i, 0));
                 return arith::SelectOp::create(i, isBelow(i, x[0], 0),
                                                number(i, 0), isGone);
               });
  return ReduceOp::create(b, Reduction::add, drops, dimsOf(drops));
}

struct CountChoicesPass : impl::CountChoicesPassBase<CountChoicesPass> {
  using CountChoicesPassBase::CountChoicesPassBase;

  void runOnOperation() override {
    auto microbatch = functionOf(getOperation(), StepFunction::microbatch),
         update = functionOf(getOperation(), StepFunction::update);
    if (!microbatch || !update) {
      getOperation().emitError() << "expected functions @microbatch and "
                                    "@update; run -transformer-build-update "
                                    "first";
      return signalPassFailure();
    }
    llvm::SetVector<Operation *> routers = routersOf(microbatch);
    if (biasRate > 0 && llvm::none_of(routers, biasOf)) {
      emitError(analysis::ofSpec("experts.bias_rate", getOperation().getLoc()))
          << "the model has no bias by which experts are chosen; leave the "
             "line out";
      return signalPassFailure();
    }
    if (routers.empty())
      return;
    for (Operation *router : routers)
      experts.push_back(scoresOf(router).getShape().back());
    for (auto [i, router] : llvm::enumerate(routers)) {
      count(router, static_cast<int64_t>(i));
      if (LimitChoicesOp limit = limitBehind(router))
        countDrops(limit, static_cast<int64_t>(i));
    }
    tell(update);
    if (llvm::any_of(routers, limitBehind))
      tellDrops(update);
    if (hasBalance(update))
      tellEven(update, routers.getArrayRef());
    if (biasRate > 0)
      for (auto [i, router] : llvm::enumerate(routers))
        if (ParameterOp bias = biasOf(router))
          move(update, bias, static_cast<int64_t>(i));
  }

  static RankedTensorType scoresOf(Operation *router) {
    return withElement(router->getOperand(0).getType(),
                       Float32Type::get(router->getContext()));
  }
  int64_t most() const { return *llvm::max_element(experts); }

  RankedTensorType typeOf(ArrayRef<StringRef> dims, ArrayRef<int64_t> shape,
                          Type element) {
    return namedType(shape, DimsAttr::get(&getContext(), dims), element);
  }
  /// Of all routers: a row each, zeros behind its experts.
  RankedTensorType countsType(Type element) {
    return typeOf({ofRouters, ofChoices},
                  {static_cast<int64_t>(experts.size()), most()}, element);
  }

  /// A microbatch has far fewer tokens than f32 can count; a step may have
  /// more, so the sum over microbatches and ranks is exact.
  void count(Operation *router, int64_t row) {
    ImplicitLocOpBuilder b(router->getLoc(), router);
    b.setInsertionPointAfter(router);
    OfSameBlock inherit(b, router);
    Value counts =
        sumOverTokens(b, chosenBy(b, router, scoresOf(router)), false);
    Type f32 = b.getF32Type();
    Value own = UnsliceOp::create(b, typeOf({ofChoices}, {most()}, f32), counts,
                                  b.getStringAttr(ofChoices),
                                  b.getDenseI64ArrayAttr({0}));
    Value all =
        UnsliceOp::create(b, countsType(f32), own, b.getStringAttr(ofRouters),
                          b.getDenseI64ArrayAttr({row}));
    AccumulateOp::create(b, counted, all, /*exact=*/true);
  }

  /// A number for each router.
  RankedTensorType perRouter(Type element) {
    return typeOf({ofRouters}, {static_cast<int64_t>(experts.size())}, element);
  }

  void countDrops(LimitChoicesOp limit, int64_t row) {
    ImplicitLocOpBuilder b(limit->getLoc(), limit);
    b.setInsertionPointAfter(limit);
    OfSameBlock inherit(b, limit);
    Value all = UnsliceOp::create(b, perRouter(b.getF32Type()),
                                  dropsOf(b, limit), b.getStringAttr(ofRouters),
                                  b.getDenseI64ArrayAttr({row}));
    AccumulateOp::create(b, countedDrops, all, /*exact=*/true);
  }

  static AssignOp assignmentOfLoss(func::FuncOp update) {
    auto assigns = update.getOps<AssignOp>();
    return *llvm::find_if(
        assigns, [](AssignOp op) { return op.getKind() == StateKind::loss; });
  }
  /// Where a metric is told: behind the loss, which is known first, and before
  /// anything is updated.
  static ImplicitLocOpBuilder whereTold(func::FuncOp update) {
    AssignOp loss = assignmentOfLoss(update);
    ImplicitLocOpBuilder b(loss->getLoc(), loss);
    b.setInsertionPointAfter(loss);
    return b;
  }
  static Value stateOf(func::FuncOp update, const StateKey &key, Type type) {
    auto states = update.getOps<StateOp>();
    auto loss = llvm::find_if(
        states, [](StateOp op) { return op.getKind() == StateKind::loss; });
    ImplicitLocOpBuilder b((*loss)->getLoc(), *loss);
    b.setInsertionPointAfter(*loss);
    return StateOp::create(b, type, key);
  }

  void tell(func::FuncOp update) {
    auto i32 = IntegerType::get(&getContext(), 32);
    counts = stateOf(update, counted, countsType(i32));
    auto b = whereTold(update);
    AssignOp::create(b, told, load(b));
  }

  void tellDrops(func::FuncOp update) {
    auto i32 = IntegerType::get(&getContext(), 32);
    Value drops = stateOf(update, countedDrops, perRouter(i32));
    auto b = whereTold(update);
    AssignOp::create(
        b, toldDrops,
        buildMap(b, b.getLoc(), perRouter(b.getF32Type()), drops,
                 [](ImplicitLocOpBuilder &i, ValueRange x) -> Value {
                   return arith::SIToFPOp::create(i, i.getF32Type(), x[0]);
                 }));
  }

  static bool hasBalance(func::FuncOp update) {
    return llvm::any_of(update.getOps<AssignOp>(), [](AssignOp op) {
      return op.getKind() == StateKind::metric &&
             op.getName() == "balance_loss";
    });
  }
  /// The balance loss of even routing: a token's choices, the mean over layers.
  void tellEven(func::FuncOp update, ArrayRef<Operation *> routers) {
    double sum = 0;
    for (Operation *router : routers)
      sum += static_cast<double>(
          tensorType(router->getResult(0)).getShape().back());
    auto b = whereTold(update);
    AssignOp::create(
        b, {StateKind::metric, "balance_at_even"},
        buildMap(b, b.getLoc(), RankedTensorType::get({}, b.getF32Type()), {},
                 [&](ImplicitLocOpBuilder &i, ValueRange) -> Value {
                   return number(i, sum / static_cast<double>(routers.size()));
                 }));
  }

  /// [routers, 3]: the largest count, the mean and the least.
  Value load(ImplicitLocOpBuilder &b) {
    DimsAttr over = DimsAttr::get(b.getContext(), {ofChoices});
    Value largest = ReduceOp::create(b, Reduction::max, signedBy(b, 1), over);
    sums = ReduceOp::create(b, Reduction::add, signedBy(b, 1), over);
    Value least = ReduceOp::create(b, Reduction::max, signedBy(b, -1), over);
    auto type =
        typeOf({ofRouters, ofLoad}, {static_cast<int64_t>(experts.size()), 3},
               b.getF32Type());
    return buildMap(
        b, b.getLoc(), type, {largest, sums, least},
        [&](ImplicitLocOpBuilder &i, ValueRange x) -> Value {
          Value column = indexAlong(i, ofLoad);
          Value mean = arith::DivFOp::create(
              i, x[1], eachRouter(i, [&](int64_t count) {
                return number(i, static_cast<double>(count));
              }));
          Value last = arith::SelectOp::create(i, isBelow(i, column, 2), mean,
                                               arith::NegFOp::create(i, x[2]));
          return arith::SelectOp::create(i, isBelow(i, column, 1), x[0], last);
        });
  }

  /// Counts times 1 or -1, in f32; -infinity where a router has no such expert
  /// and the least count is looked for.
  Value signedBy(ImplicitLocOpBuilder &b, int sign) {
    return buildMap(b, b.getLoc(), countsType(b.getF32Type()), counts,
                    [&](ImplicitLocOpBuilder &i, ValueRange x) -> Value {
                      Value value =
                          arith::SIToFPOp::create(i, i.getF32Type(), x[0]);
                      if (sign > 0)
                        return value;
                      value = arith::NegFOp::create(i, value);
                      if (llvm::all_equal(experts))
                        return value;
                      Value column = indexAlong(i, ofChoices);
                      Value isOwn = eachRouter(i, [&](int64_t count) {
                        return isBelow(i, column, count);
                      });
                      return arith::SelectOp::create(
                          i, isOwn, value,
                          number(i, -std::numeric_limits<double>::infinity()));
                    });
  }

  /// What `make` gives for the number of experts of the router at hand.
  Value eachRouter(ImplicitLocOpBuilder &b,
                   llvm::function_ref<Value(int64_t)> make) {
    Value value = make(experts.back());
    for (int64_t i = static_cast<int64_t>(experts.size()) - 1; i > 0; --i)
      if (experts[i - 1] != experts[i])
        value =
            arith::SelectOp::create(b, isBelow(b, indexAlong(b, ofRouters), i),
                                    make(experts[i - 1]), value);
    return value;
  }

  /// By the counts of the router in `row`, at the end of the update.
  void move(func::FuncOp update, ParameterOp bias, int64_t row) {
    Operation *end = update.getBody().front().getTerminator();
    ImplicitLocOpBuilder b(bias.getLoc(), end);
    auto type = tensorType(bias.getResult());
    StateKey key{StateKind::weight, bias.getName()};
    Value old = StateOp::create(b, type, key), own = rowOf(b, type, row),
          sum = SliceOp::create(b, RankedTensorType::get({}, b.getF32Type()),
                                sums, b.getStringAttr(ofRouters), row);
    AssignOp::create(
        b, key,
        buildMap(b, b.getLoc(), type, {old, own, sum, normOf(update)},
                 [&](ImplicitLocOpBuilder &i, ValueRange x) -> Value {
                   Value mean = arith::DivFOp::create(
                       i, x[2],
                       number(i, static_cast<double>(type.getNumElements())));
                   Value count =
                       arith::SIToFPOp::create(i, i.getF32Type(), x[1]);
                   return moved(i, x[0], mean, count, x[3]);
                 }));
  }

  /// The counts of a router's own experts, with the dim of its bias.
  Value rowOf(ImplicitLocOpBuilder &b, RankedTensorType bias, int64_t row) {
    Value all =
        SliceOp::create(b, typeOf({ofChoices}, {most()}, b.getI32Type()),
                        counts, b.getStringAttr(ofRouters), row);
    return SliceOp::create(b, withElement(bias, b.getI32Type()), all,
                           b.getStringAttr(ofChoices), int64_t{0});
  }

  static Value normOf(func::FuncOp update) {
    auto assigns = update.getOps<AssignOp>();
    return (*llvm::find_if(assigns,
                           [](AssignOp op) {
                             return op.getKind() == StateKind::grad_norm;
                           }))
        .getValue();
  }

  /// `old` and the rate times the sign of mean - count. It reads the norm,
  /// times 0, so that no schedule moves it before that is known.
  Value moved(ImplicitLocOpBuilder &b, Value old, Value mean, Value count,
              Value norm) {
    using Predicate = arith::CmpFPredicate;
    Value none = arith::MulFOp::create(b, norm, number(b, 0)),
          fewer = arith::CmpFOp::create(b, Predicate::OLT, count, mean),
          more = arith::CmpFOp::create(b, Predicate::OGT, count, mean);
    Value less = arith::SelectOp::create(b, more, number(b, -biasRate), none);
    return arith::AddFOp::create(
        b, old, arith::SelectOp::create(b, fewer, number(b, biasRate), less));
  }

  SmallVector<int64_t> experts; // of each router
  Value counts, sums;           // of all routers, in the update
};
} // namespace
} // namespace meshwork::transform
