// Losses that make routers choose experts evenly. Balance: Shazeer et al.,
// arXiv 1701.06538, in the form of Switch Transformers, 2101.03961. The z-loss:
// Zoph et al., 2202.08906. Sums are over the tokens of one sequence, so they do
// not depend on how sequences fall to microbatches and ranks.
#include "dialects/transformer/Dims.h"
#include "dialects/transformer/Facts.h"
#include "passes/analysis/SpecKey.h"
#include "passes/transform/Loss.h"
#include "passes/transform/Passes.h"

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

  /// How often each expert was chosen: [samples, experts].
  Value counts(ImplicitLocOpBuilder &b) {
    Value choices = choose->getResult(0);
    Value each = ones(b, withElement(choices.getType(), b.getF32Type()));
    return sum(b, PickGradOp::create(b, logits.getType(), each, choices));
  }
  /// Sums of scores, likewise.
  Value scores(ImplicitLocOpBuilder &b) {
    return sum(b, SoftmaxOp::create(b, logits.getType(), logits));
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
  int64_t samples() const {
    int64_t dim = dimsOf(logits).find(
        StringAttr::get(choose->getContext(), dims::samples));
    return dim < 0 ? 1 : tensorType(logits).getDimSize(dim);
  }
  /// Where its choices are made.
  Operation *place() { return choose; }

private:
  static Value ones(ImplicitLocOpBuilder &b, Type type) {
    return buildMap(b, b.getLoc(), type, {},
                    [](ImplicitLocOpBuilder &i, ValueRange) -> Value {
                      return arith::ConstantOp::create(i, i.getF32FloatAttr(1));
                    });
  }

  /// Over the tokens of each sample: a product with ones, as dims in the middle
  /// are added up by products alone.
  static Value sum(ImplicitLocOpBuilder &b, Value of) {
    auto type = tensorType(of);
    ArrayRef<StringAttr> names = dimsOf(of).getNames();
    std::string rows = letters(names.size() - 1), kept;
    SmallVector<int64_t> shape;
    SmallVector<StringAttr> left;
    for (auto [i, name] : llvm::enumerate(names))
      if (name.getValue() == dims::samples || i + 1 == names.size()) {
        kept += static_cast<char>('a' + i);
        shape.push_back(type.getDimSize(i));
        left.push_back(name);
      }
    Type rowType = namedType(type.getShape().drop_back(), dimsOfRows(of),
                             b.getF32Type()),
         result = namedType(shape, DimsAttr::get(b.getContext(), left),
                            b.getF32Type());
    return ContractOp::create(
        b, result,
        b.getStringAttr(letters(names.size()) + "," + rows + "->" + kept), of,
        ones(b, rowType));
  }
  static std::string letters(size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i)
      text += static_cast<char>('a' + i);
    return text;
  }
  static DimsAttr dimsOfRows(Value of) {
    return DimsAttr::get(of.getContext(), dimsOf(of).getNames().drop_back());
  }

  Operation *choose;
  Value logits;
};

struct RouterLossesPass : impl::RouterLossesPassBase<RouterLossesPass> {
  using RouterLossesPassBase::RouterLossesPassBase;

  void runOnOperation() override {
    auto loss = functionOf(getOperation(), StepFunction::loss);
    llvm::SetVector<Operation *> choices;
    if (loss)
      loss.walk([&](ExpertsOp op) {
        if (Operation *from = op.getChoices().getDefiningOp();
            from && from->getNumOperands() > 0)
          choices.insert(from);
      });
    for (Operation *op : choices)
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
    if (balance != spec::Balance::none && adds)
      addBalance();
    if (zCoefficient > 0)
      addSquares();
  }

  double ofBalance() {
    if (balanceCoefficient >= 0)
      return balanceCoefficient;
    auto own =
        getOperation()->getAttrOfType<FloatAttr>(facts::balanceCoefficient);
    return own ? own.getValueAsDouble() : 0;
  }

  /// Of one router among all, in the mean over layers and the step's samples.
  double share(const Router &of) const {
    return 1 / (static_cast<double>(routers.size()) *
                static_cast<double>(of.samples()) *
                static_cast<double>(microbatches));
  }

  void addBalance() {
    Value counts, scores; // of the layers so far
    for (Router &router : routers) {
      auto b = behind(router);
      OfSameBlock inherit(b, router.place());
      Value f = router.counts(b), p = router.scores(b);
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
                    static_cast<double>(of.samples()),
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
      double factor = share(router) * static_cast<double>(router.samples()) /
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
