// The optimizer step as maps and reductions over state: what all optimizers
// share. What one of them keeps and computes is in lib/Optimizer.
//
// Clipping by global norm: Pascanu et al., arXiv 1211.5063, with the 1e-6 that
// PyTorch adds.
#include "dialects/transformer/StepFunctions.h"
#include "dialects/transformer/Transformer.h"
#include "lib/Optimizer/Optimizer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/autodiff/Groups.h"
#include "passes/autodiff/Passes.h"
#include <set>

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
  /// 1, -1, or 0 of zero and of what is no number.
  Value sign(Value x) {
    using Predicate = arith::CmpFPredicate;
    Value zero = (*this)(0),
          above = arith::CmpFOp::create(b, Predicate::OGT, x, zero),
          below = arith::CmpFOp::create(b, Predicate::OLT, x, zero);
    Value notAbove = arith::SelectOp::create(b, below, (*this)(-1), zero);
    return arith::SelectOp::create(b, above, (*this)(1), notAbove);
  }
};

/// What an optimizer computes, as ops in the body of a map.
class InMap : public optimizer::Arithmetic {
public:
  explicit InMap(ImplicitLocOpBuilder &b) : s{b} {}
  optimizer::Number number(Value value) {
    return {this, value.getAsOpaquePointer()};
  }
  static Value valueOf(optimizer::Number number) { return of(number.value); }

  const void *constant(double value) override {
    return s(value).getAsOpaquePointer();
  }
  const void *apply(Op op, const void *a, const void *b) override {
    return build(op, of(a), b ? of(b) : Value()).getAsOpaquePointer();
  }

private:
  static Value of(const void *value) {
    return Value::getFromOpaquePointer(value);
  }
  Value build(Op op, Value a, Value b) {
    switch (op) {
    case Op::add:
      return s.add(a, b);
    case Op::sub:
      return s.sub(a, b);
    case Op::mul:
      return s.mul(a, b);
    case Op::div:
      return s.div(a, b);
    case Op::sqrt:
      return s.sqrt(a);
    case Op::sign:
      return s.sign(a);
    }
    llvm_unreachable("all ops are handled");
  }
  Scalars s;
};

struct BuildUpdatePass : impl::BuildUpdatePassBase<BuildUpdatePass> {
  using BuildUpdatePassBase::BuildUpdatePassBase;

  void runOnOperation() override {
    if (failed(readOptimizer()))
      return signalPassFailure();
    func::FuncOp microbatch = microbatchOf(getOperation());
    if (!microbatch)
      return signalPassFailure();
    auto parameters = llvm::to_vector(llvm::make_filter_range(
        microbatch.getOps<ParameterOp>(),
        [](ParameterOp parameter) { return !parameter.getUntrained(); }));
    FailureOr<Groups> found = Groups::of(parameters, groups);
    if (failed(found))
      return signalPassFailure();
    auto b = ImplicitLocOpBuilder::atBlockEnd(getOperation().getLoc(),
                                              getOperation().getBody());
    auto update = func::FuncOp::create(b, symbolOf(StepFunction::update),
                                       b.getFunctionType({}, {}));
    b.setInsertionPointToStart(update.addEntryBlock());
    SmallVector<Value> gradients;
    for (ParameterOp parameter : parameters)
      gradients.push_back(
          StateOp::create(b, withElement(parameter.getType(), b.getF32Type()),
                          StateKey{StateKind::gradient, parameter.getName()}));
    assignNumbers(b, microbatch);
    Value factor = buildClipping(b, gradients);
    SmallVector<Value> scalars = {factor, input(b, StepInput::learning_rate)};
    for (double base : method->corrections(values))
      scalars.push_back(biasCorrection(b, base));
    for (auto [parameter, gradient] : llvm::zip_equal(parameters, gradients))
      buildParameter(b, parameter, found->groupOf(parameter), gradient,
                     scalars);
    func::ReturnOp::create(b);
  }

  /// The loss and what a step tells beside it. All are read before one is
  /// written: sums over ranks go behind the last that is read.
  void assignNumbers(ImplicitLocOpBuilder &b, func::FuncOp microbatch) {
    std::set<StateKey> keys = {{StateKind::loss, ""}};
    for (auto op : microbatch.getOps<AccumulateOp>())
      if (op.getKind() == StateKind::metric)
        keys.insert(op.getKey());
    SmallVector<Value> numbers;
    for (const StateKey &key : keys)
      numbers.push_back(StateOp::create(b, scalarType(), key));
    for (auto [key, number] : llvm::zip_equal(keys, numbers))
      AssignOp::create(b, key, number);
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
    // Apart from its root, so that stages of a pipeline can add up theirs.
    Value sum = buildSum(b, sums);
    Value norm = buildMap(b, b.getLoc(), scalarType(), sum,
                          [](ImplicitLocOpBuilder &i, ValueRange x) {
                            return Scalars{i}.sqrt(x[0]);
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

  bool isMixed() const { return compute != spec::Type::f32; }
  bool roundsAtRandom() const {
    return isMixed() && rounding == spec::Rounding::stochastic;
  }

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

  LogicalResult readOptimizer() {
    method = optimizer::find(kind.getValue());
    if (!method)
      return getOperation().emitError()
             << "there is no optimizer '" << kind << "'";
    values = method->defaults();
    for (const options::Setting &given : settings) {
      const optimizer::Setting *known = method->find(given.name);
      if (!known || !known->range.holds(given.value)) {
        InFlightDiagnostic diag = getOperation().emitError()
                                  << "'" << given.name << "=" << given.value
                                  << "' is no setting of optimizer '" << kind
                                  << "'";
        if (known)
          diag << ", expected " << known->range.expected;
        return diag;
      }
      values.insert_or_assign(given.name, given.value);
    }
    if (const optimizer::Setting *lacking = method->findLacking(values))
      return getOperation().emitError()
             << "setting '" << lacking->name << "' of optimizer '" << kind
             << "' needs '" << lacking->needs << "', which is 0";
    return success();
  }

  /// How one parameter is trained.
  struct Treatment {
    optimizer::Settings settings;
    double rate = 1; // times the step's
  };
  /// Vectors and numbers in files do not decay.
  Treatment treatmentOf(ParameterOp parameter,
                        const spec::OptimizerGroup *group) {
    Treatment own{values};
    auto decay = own.settings.find(optimizer::weightDecay);
    if (decay != own.settings.end())
      decay->second *=
          parameter.isMatrixInFiles() ? (group ? group->weightDecay : 1) : 0;
    if (group)
      own.rate = group->rate;
    return own;
  }

  /// Weight and states as they are after the step, from the values of the
  /// operands that buildParameter gives.
  SmallVector<Value> updated(ImplicitLocOpBuilder &b, ValueRange x,
                             const Treatment &own, size_t numStates) {
    InMap in(b);
    auto numbers = [&](ValueRange range) {
      std::vector<optimizer::Number> list;
      for (Value value : range)
        list.push_back(in.number(value));
      return list;
    };
    ValueRange states = x.slice(2, numStates),
               scalars = x.drop_front(2 + numStates);
    Scalars s{b};
    Value rate = own.rate == 1 ? scalars[1] : s.mul(scalars[1], s(own.rate));
    optimizer::Element element{
        in.number(s.mul(x[0], scalars[0])), in.number(x[1]), in.number(rate),
        numbers(states),
        numbers(scalars.slice(2, method->corrections(own.settings).size()))};
    optimizer::Updated result = method->update(element, own.settings);
    SmallVector<Value> list = {InMap::valueOf(result.weight)};
    for (optimizer::Number state : result.states)
      list.push_back(InMap::valueOf(state));
    return list;
  }

  void buildParameter(ImplicitLocOpBuilder &b, ParameterOp parameter,
                      const spec::OptimizerGroup *group, Value gradient,
                      ArrayRef<Value> scalars) {
    StringRef name = parameter.getName();
    auto type = withElement(parameter.getType(), b.getF32Type());
    Treatment own = treatmentOf(parameter, group);
    std::vector<optimizer::State> states = method->states(values);
    SmallVector<StateKey> keys = {{StateKind::master, name}};
    SmallVector<Value> operands = {gradient, StateOp::create(b, type, keys[0])};
    for (const optimizer::State &state : states) {
      keys.push_back({StateKind::optimizer, name, state.name});
      operands.push_back(StateOp::create(b, type, keys.back(), state.initial));
    }
    SmallVector<Type> results(keys.size(), type);
    llvm::append_range(operands, scalars);
    size_t random = operands.size();
    if (isMixed())
      results.push_back(withElement(type, b.getBF16Type()));
    if (roundsAtRandom())
      llvm::append_range(operands, randomInputs(b));
    auto map = MapOp::create(
        b, b.getLoc(), results, operands,
        [&](OpBuilder &builder, mlir::Location loc, ValueRange x) {
          ImplicitLocOpBuilder i(loc, builder);
          SmallVector<Value> list = updated(i, x, own, states.size());
          if (isMixed())
            list.push_back(
                roundsAtRandom()
                    ? roundedAtRandom(i, list[0], name, x.drop_front(random))
                    : list[0]);
          return list;
        });
    for (auto [key, value] : llvm::zip(keys, map.getResults()))
      AssignOp::create(b, key, value);
    // One and the same in f32, unless ranks hold parts of the master alone.
    AssignOp::create(b, StateKey{StateKind::weight, name},
                     map.getResults()[isMixed() ? keys.size() : 0]);
  }

  static Value roundedAtRandom(ImplicitLocOpBuilder &b, Value weight,
                               StringRef name, ValueRange random) {
    return StochasticRoundOp::create(b, b.getF32Type(), random[0], random[1],
                                     random[2], ValueRange(), weight,
                                     b.getI32IntegerAttr(randomStream(name)),
                                     DenseI64ArrayAttr(), ArrayAttr());
  }

  const optimizer::Optimizer *method = nullptr;
  optimizer::Settings values;
};
} // namespace
} // namespace meshwork::autodiff
