// Losses that make routers choose experts evenly. Balance: Shazeer et al.,
// arXiv 1701.06538, in the form of Switch Transformers, 2101.03961. The z-loss:
// Zoph et al., 2202.08906. Sums are over the tokens of a group of sequences, so
// they do not depend on how these fall to microbatches and ranks.
#include "dialects/transformer/Dims.h"
#include "dialects/transformer/Facts.h"
#include "passes/analysis/SpecKey.h"
#include "passes/transform/Loss.h"
#include "passes/transform/Passes.h"
#include "passes/transform/Routers.h"

using namespace mlir;
namespace meshwork::transform {
#define GEN_PASS_DEF_ROUTERLOSSESPASS
#include "passes/transform/Passes.h.inc"
namespace {
using namespace transformer;

Value multiply(ImplicitLocOpBuilder &b, Value x, double factor) {
  return arith::MulFOp::create(
      b, x,
      arith::ConstantOp::create(b,
                                b.getF32FloatAttr(static_cast<float>(factor))));
}

/// One router: what its experts' tokens choose from.
class Router {
public:
  /// By what makes the choices of `experts`, of scores that are its first
  /// operand.
  explicit Router(Operation *choose) : choose(choose) {
    Value scores = choose->getOperand(0);
    auto softmax = scores.getDefiningOp<SoftmaxOp>();
    logits = softmax ? softmax.getInput() : scores;
  }

  /// How often each expert was chosen: [groups of samples, experts].
  Value counts(ImplicitLocOpBuilder &b, int64_t group) {
    return sumOfGroups(
        b, sumOverTokens(b, chosenBy(b, choose, logits.getType()), true),
        group);
  }
  /// Sums of scores, likewise.
  Value scores(ImplicitLocOpBuilder &b, int64_t group) {
    Value probabilities = SoftmaxOp::create(b, logits.getType(), logits);
    return sumOfGroups(b, sumOverTokens(b, probabilities, true), group);
  }
  /// The sum over all tokens of the square of their log-sum-exp.
  Value squares(ImplicitLocOpBuilder &b, double factor) {
    DimsAttr last =
        DimsAttr::get(b.getContext(), dimsOf(logits).getNames().take_back());
    Value most = ReduceOp::create(b, Reduction::max, logits, last);
    Value powers = buildMap(b, b.getLoc(), logits.getType(), {logits, most},
                            [](ImplicitLocOpBuilder &i, ValueRange x) -> Value {
                              return math::ExpOp::create(
                                  i, arith::SubFOp::create(i, x[0], x[1]));
                            });
    Value all = ReduceOp::create(b, Reduction::add, powers, last);
    Value terms = buildMap(
        b, b.getLoc(), all.getType(), {all, most},
        [&](ImplicitLocOpBuilder &i, ValueRange x) -> Value {
          Value sum =
              arith::AddFOp::create(i, math::LogOp::create(i, x[0]), x[1]);
          return multiply(i, arith::MulFOp::create(i, sum, sum), factor);
        });
    return ReduceOp::create(b, Reduction::add, terms, dimsOf(terms));
  }

  int64_t experts() const { return tensorType(logits).getShape().back(); }
  int64_t tokens() const {
    return tensorType(logits).getNumElements() / experts();
  }
  /// Of so many samples each.
  int64_t groups(int64_t group) const {
    int64_t dim = dimsOf(logits).find(
        StringAttr::get(choose->getContext(), dims::samples));
    return dim < 0 ? 1 : countGroups(tensorType(logits).getDimSize(dim), group);
  }
  /// Where its choices are made.
  Operation *place() { return choose; }

private:
  Operation *choose;
  Value logits;
};

struct RouterLossesPass : impl::RouterLossesPassBase<RouterLossesPass> {
  using RouterLossesPassBase::RouterLossesPassBase;

  void runOnOperation() override {
    auto loss = functionOf(getOperation(), StepFunction::loss);
    if (loss)
      for (Operation *op : routersOf(loss))
        routers.emplace_back(op);
    if (routers.empty() && (balanceCoefficient > 0 || zCoefficient > 0)) {
      emitError(analysis::ofSpec(balanceCoefficient > 0
                                     ? "experts.balance_coefficient"
                                     : "experts.z_coefficient",
                                 getOperation().getLoc()))
          << "the model has no router that chooses experts; leave the line out";
      return signalPassFailure();
    }
    bool adds = !routers.empty() && ofBalance() > 0;
    if (balance == spec::Balance::ofLayer && !adds)
      emitWarning(analysis::ofSpec("experts.balance", getOperation().getLoc()))
          << "\"layer\" adds no loss: "
          << (routers.empty() ? "the model has no router that chooses experts"
                              : "its coefficient is 0; give "
                                "experts.balance_coefficient");
    if (group > 1 && !limits(loss) && (balance == spec::Balance::none || !adds))
      emitWarning(analysis::ofSpec("experts.group", getOperation().getLoc()))
          << "has no effect: there is no balance loss and no capacity";
    if (balance != spec::Balance::none && adds)
      addBalance();
    if (zCoefficient > 0)
      addSquares();
  }

  static bool limits(func::FuncOp loss) {
    return loss && !loss.getOps<LimitChoicesOp>().empty();
  }

  double ofBalance() {
    if (balanceCoefficient >= 0)
      return balanceCoefficient;
    auto own =
        getOperation()->getAttrOfType<FloatAttr>(facts::balanceCoefficient);
    return own ? own.getValueAsDouble() : 0;
  }

  /// Of one router among all, in the mean over layers and the step's groups.
  double share(const Router &of) const {
    return 1 / (static_cast<double>(routers.size()) *
                static_cast<double>(of.groups(group)) *
                static_cast<double>(microbatches));
  }

  void addBalance() {
    Value counts, scores; // of the layers so far
    for (Router &router : routers) {
      auto b = behind(router);
      OfSameBlock inherit(b, router.place());
      Value f = router.counts(b, group), p = router.scores(b, group);
      if (balance == spec::Balance::ofLayer) {
        addProduct(b, router, f, p, share(router));
        continue;
      }
      counts = counts ? buildSum(b, b.getLoc(), counts, f) : f;
      scores = scores ? buildSum(b, b.getLoc(), scores, p) : p;
      if (&router == &routers.back())
        addProduct(b, router, counts, scores,
                   share(router) / static_cast<double>(routers.size()));
    }
  }

  void addProduct(ImplicitLocOpBuilder &b, const Router &of, Value counts,
                  Value scores, double share) {
    double tokens = static_cast<double>(of.tokens()) /
                    static_cast<double>(of.groups(group)),
           factor =
               share * static_cast<double>(of.experts()) / (tokens * tokens);
    Value terms = buildMap(
        b, b.getLoc(), counts.getType(), {counts, scores},
        [&](ImplicitLocOpBuilder &i, ValueRange x) -> Value {
          return multiply(i, arith::MulFOp::create(i, x[0], x[1]), factor);
        });
    Value sum = ReduceOp::create(b, Reduction::add, terms, dimsOf(terms));
    AuxiliaryLossOp::create(b, "balance_loss", APFloat(ofBalance()), sum);
  }

  void addSquares() {
    for (Router &router : routers) {
      auto b = behind(router);
      OfSameBlock inherit(b, router.place());
      double factor = share(router) *
                      static_cast<double>(router.groups(group)) /
                      static_cast<double>(router.tokens());
      AuxiliaryLossOp::create(b, "router_z", APFloat(double{zCoefficient}),
                              router.squares(b, factor));
    }
  }

  static ImplicitLocOpBuilder behind(Router &router) {
    ImplicitLocOpBuilder b(router.place()->getLoc(), router.place());
    b.setInsertionPointAfter(router.place());
    return b;
  }

  std::vector<Router> routers; // in the order of the text
};
} // namespace
} // namespace meshwork::transform
