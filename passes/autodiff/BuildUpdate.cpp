// The optimizer step as maps and reductions over state.
//
// AdamW: Loshchilov and Hutter, arXiv 1711.05101, in the form of PyTorch's
// (bias corrections as step inputs, epsilon outside the root). Clipping by
// global norm: Pascanu et al., arXiv 1211.5063, with the 1e-6 that PyTorch
// adds.
#include "dialects/transformer/Transformer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/autodiff/Passes.h"

using namespace mlir;
namespace meshwork::autodiff {
#define GEN_PASS_DEF_BUILDUPDATEPASS
#include "passes/autodiff/Passes.h.inc"
namespace {
using namespace transformer;

/// Scalar arithmetic in a body, short enough to read the formulas.
struct Scalars {
  ImplicitLocOpBuilder &b;
  Value operator()(double value) {
    return arith::ConstantOp::create(
        b, b.getF32FloatAttr(static_cast<float>(value)));
  }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
  Value sqrt(Value x) { return math::SqrtOp::create(b, x); }
};

/// Terms that one map adds. A model has hundreds of parameters, and a GPU's
/// kernel takes 544 arguments.
constexpr size_t maxTerms = 256;

struct BuildUpdatePass : impl::BuildUpdatePassBase<BuildUpdatePass> {
  using BuildUpdatePassBase::BuildUpdatePassBase;

  void runOnOperation() override {
    if (rounding != "nearest" && rounding != "stochastic") {
      getOperation().emitError()
          << "rounding is '" << rounding << "', expected nearest or stochastic";
      return signalPassFailure();
    }
    auto microbatch = getOperation().lookupSymbol<func::FuncOp>("microbatch");
    if (!microbatch) {
      getOperation().emitError()
          << "expected a function @microbatch; run -transformer-autodiff first";
      return signalPassFailure();
    }
    auto b = ImplicitLocOpBuilder::atBlockEnd(getOperation().getLoc(),
                                              getOperation().getBody());
    auto update = func::FuncOp::create(b, "update", b.getFunctionType({}, {}));
    b.setInsertionPointToStart(update.addEntryBlock());
    SmallVector<ParameterOp> parameters(microbatch.getOps<ParameterOp>());
    SmallVector<Value> gradients;
    for (ParameterOp parameter : parameters)
      gradients.push_back(
          StateOp::create(b, withElement(parameter.getType(), b.getF32Type()),
                          StateKey{StateKind::gradient, parameter.getName()}));
    StateKey ofLoss{StateKind::loss, ""};
    AssignOp::create(b, ofLoss, StateOp::create(b, scalarType(), ofLoss));
    Value factor = buildClipping(b, gradients);
    Value scalars[] = {factor, input(b, StepInput::learning_rate),
                       biasCorrection(b, beta1), biasCorrection(b, beta2)};
    for (auto [parameter, gradient] : llvm::zip_equal(parameters, gradients))
      buildAdamW(b, parameter, gradient, scalars);
    func::ReturnOp::create(b);
  }

  RankedTensorType scalarType() {
    return RankedTensorType::get({}, Float32Type::get(&getContext()));
  }
  Value input(ImplicitLocOpBuilder &b, StepInput kind) {
    return StepInputOp::create(b, scalarType(), kind);
  }
  Value biasCorrection(ImplicitLocOpBuilder &b, double base) {
    return StepInputOp::create(b, scalarType(), StepInput::bias_correction,
                               b.getF64FloatAttr(base));
  }

  static Value total(ImplicitLocOpBuilder &b, ValueRange terms) {
    Scalars s{b};
    Value sum = s(0);
    for (Value term : terms)
      sum = s.add(sum, term);
    return sum;
  }

  SmallVector<Value> addedByGroups(ImplicitLocOpBuilder &b,
                                   ArrayRef<Value> terms) {
    SmallVector<Value> sums;
    for (; !terms.empty();
         terms = terms.drop_front(std::min(terms.size(), maxTerms)))
      sums.push_back(buildMap(b, b.getLoc(), scalarType(),
                              terms.take_front(maxTerms), total));
    return sums;
  }

  /// Assigns the global norm; returns what every gradient is multiplied with.
  Value buildClipping(ImplicitLocOpBuilder &b, ArrayRef<Value> gradients) {
    SmallVector<Value> sums;
    for (Value gradient : gradients) {
      Value squares = buildMap(b, b.getLoc(), gradient.getType(), gradient,
                               [](ImplicitLocOpBuilder &i, ValueRange x) {
                                 return Scalars{i}.mul(x[0], x[0]);
                               });
      sums.push_back(
          ReduceOp::create(b, Reduction::add, squares, dimsOf(gradient)));
    }
    while (sums.size() > maxTerms)
      sums = addedByGroups(b, sums);
    Value norm = buildMap(b, b.getLoc(), scalarType(), sums,
                          [](ImplicitLocOpBuilder &i, ValueRange x) {
                            return Scalars{i}.sqrt(total(i, x));
                          });
    AssignOp::create(b, StateKey{StateKind::grad_norm, ""}, norm);
    return buildMap(b, b.getLoc(), scalarType(), norm,
                    [&](ImplicitLocOpBuilder &i, ValueRange x) -> Value {
                      Scalars s{i};
                      // 1, or NaN: what reads it waits for the norm, so that no
                      // schedule updates weights before it is known.
                      if (clipGradNorm == 0)
                        return s.add(s.mul(x[0], s(0)), s(1));
                      Value coefficient =
                          s.div(s(clipGradNorm), s.add(x[0], s(1e-6)));
                      return arith::MinimumFOp::create(i, coefficient, s(1));
                    });
  }

  bool isMixed() const { return compute != "f32"; }
  bool roundsAtRandom() const { return isMixed() && rounding == "stochastic"; }

  /// Seed, step and first sample. A parameter has no samples, so all ranks
  /// draw alike whichever samples are theirs.
  SmallVector<Value> randomInputs(ImplicitLocOpBuilder &b) {
    SmallVector<Value> inputs;
    auto scalar = RankedTensorType::get({}, b.getI32Type());
    for (StepInput kind :
         {StepInput::seed, StepInput::step, StepInput::first_sample})
      inputs.push_back(StepInputOp::create(b, scalar, kind));
    return inputs;
  }

  void buildAdamW(ImplicitLocOpBuilder &b, ParameterOp parameter,
                  Value gradient, ArrayRef<Value> scalars) {
    StringRef name = parameter.getName();
    auto type = withElement(parameter.getType(), b.getF32Type());
    StateKey keys[] = {{StateKind::master, name},
                       {StateKind::optimizer, name, "first_moment"},
                       {StateKind::optimizer, name, "second_moment"},
                       {StateKind::weight, name}};
    Value master = StateOp::create(b, type, keys[0]);
    Value first = StateOp::create(b, type, keys[1]);
    Value second = StateOp::create(b, type, keys[2]);
    SmallVector<Type> results(3, type);
    if (isMixed())
      results.push_back(withElement(type, b.getBF16Type()));
    double decay = parameter.getShapeInFile().size() >= 2 ? weightDecay : 0.0;
    SmallVector<Value> operands = {gradient, master, first, second};
    llvm::append_range(operands, scalars);
    if (roundsAtRandom())
      llvm::append_range(operands, randomInputs(b));
    auto map = MapOp::create(
        b, b.getLoc(), results, operands,
        [&](OpBuilder &builder, Location loc, ValueRange x) {
          ImplicitLocOpBuilder i(loc, builder);
          Scalars s{i};
          Value g = s.mul(x[0], x[4]), rate = x[5];
          Value m = s.add(s.mul(x[2], s(beta1)), s.mul(g, s(1 - beta1)));
          Value v =
              s.add(s.mul(x[3], s(beta2)), s.mul(s.mul(g, g), s(1 - beta2)));
          Value decayed = s.mul(x[1], s.sub(s(1), s.mul(rate, s(decay))));
          Value root = s.add(s.div(s.sqrt(v), s.sqrt(x[7])), s(epsilon));
          Value w = s.sub(decayed, s.div(s.mul(s.div(rate, x[6]), m), root));
          SmallVector<Value> values = {w, m, v};
          if (roundsAtRandom())
            values.push_back(StochasticRoundOp::create(
                i, i.getF32Type(), x[8], x[9], x[10], ValueRange(), w,
                i.getI32IntegerAttr(randomStream(name)), DenseI64ArrayAttr(),
                ArrayAttr()));
          else if (isMixed())
            values.push_back(w);
          return values;
        });
    for (auto [key, value] : llvm::zip(keys, map.getResults()))
      AssignOp::create(b, key, value);
    // One and the same in f32, unless ranks hold parts of the master alone.
    if (!isMixed())
      AssignOp::create(b, keys[3], map.getResult(0));
  }
};
} // namespace
} // namespace meshwork::autodiff
