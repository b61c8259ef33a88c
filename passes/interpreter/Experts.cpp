// Mixtures of experts as their definition says, token by token; what they
// become on a rank is in Routing.cpp.
#include "passes/interpreter/Collectives.h"
#include "passes/interpreter/Evaluate.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {
namespace {

/// A function and its derivative.
struct Point {
  double value, slope;
};

Point activated(Activation function, double x) {
  switch (function) {
  case Activation::gelu_tanh: {
    Gelu gelu(x);
    return {gelu.value(), gelu.slope()};
  }
  case Activation::gelu: {
    double half = std::erfc(-x / std::sqrt(2.0)) / 2,
           density = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
    return {x * half, half + x * density};
  }
  case Activation::silu: {
    double sigmoid = 1 / (1 + std::exp(-x));
    return {x * sigmoid, sigmoid * (1 + x * (1 - sigmoid))};
  }
  case Activation::relu:
    return {x > 0 ? x : 0, x > 0 ? 1.0 : 0.0};
  case Activation::sigmoid: {
    double value = 1 / (1 + std::exp(-x));
    return {value, value * (1 - value)};
  }
  }
  llvm_unreachable("all activations are handled");
}

/// Rows of one kind: they are rounded where they have a scale. `magnitude` is
/// the largest before.
struct Rows {
  std::optional<double> scale;
  bool areGradients;
  double magnitude = 0;

  double rounded(double value, Builder b) {
    if (!scale)
      return value;
    magnitude = std::max(magnitude, std::fabs(value));
    Type format = areGradients ? Type(b.getType<Float8E5M2Type>())
                               : Type(b.getType<Float8E4M3FNType>());
    return roundedToF8(value * *scale, format) / *scale;
  }
};

/// The operands of all ops, in their order; `scales` are of inner rows and of
/// the gradients of gate's and up's results, or none.
struct Mixture {
  Activation function;
  const Tensor &input, &choices, &weights, &gate, &up, &down;
  int64_t first;
  mutable Rows inner{{}, false}, dgate{{}, true}, dup{{}, true};
  Builder types;

  Mixture(Activation function, ArrayRef<Tensor> operands, const Tensor *first,
          ArrayRef<Tensor> scales, MLIRContext *context)
      : function(function), input(operands[0]), choices(operands[1]),
        weights(operands[2]), gate(operands[3]), up(operands[4]),
        down(operands[5]), first(first ? static_cast<int64_t>((*first)[0]) : 0),
        types(context) {
    Rows *rows[] = {&inner, &dgate, &dup};
    for (auto [of, scale] : llvm::zip(rows, scales))
      of->scale = scale[0];
  }

  /// Behind the sums: of the rows that the op makes.
  void tellMagnitudes(MutableArrayRef<Tensor> results, bool areGradients) {
    if (areGradients)
      results[0][0] = dgate.magnitude, results[1][0] = dup.magnitude;
    else
      results[0][0] = inner.magnitude;
  }

  int64_t experts() const { return gate.getDimSize(0); }
  int64_t width() const { return gate.getDimSize(1); }
  int64_t embed() const { return gate.getDimSize(2); }

  /// Calls `visit(token, choice, expert)` for each choice of these experts.
  template <typename Visit> void forEachChoice(Visit visit) const {
    int64_t k = choices.getShape().back();
    for (int64_t i = 0; i < choices.size(); ++i) {
      int64_t expert = static_cast<int64_t>(choices[i]) - first;
      if (choices[i] >= 0 && expert >= 0 && expert < experts())
        visit(i / k, i, expert);
    }
  }
  /// Element f of a projection's row for a token.
  double projected(const Tensor &matrices, int64_t expert, int64_t f,
                   int64_t token) const {
    double sum = 0;
    for (int64_t h = 0; h < embed(); ++h)
      sum += matrices.at({expert, f, h}) * input[token * embed() + h];
    return sum;
  }
};

Tensor mixed(const Mixture &of, Tensor result) {
  of.forEachChoice([&](int64_t token, int64_t choice, int64_t expert) {
    for (int64_t f = 0; f < of.width(); ++f) {
      double gate = of.projected(of.gate, expert, f, token),
             inner = of.inner.rounded(of.weights[choice] *
                                          activated(of.function, gate).value *
                                          of.projected(of.up, expert, f, token),
                                      of.types);
      for (int64_t h = 0; h < of.embed(); ++h)
        result[token * of.embed() + h] += of.down.at({expert, h, f}) * inner;
    }
  });
  return result;
}

/// What one element of one choice's inner row adds to the gradients: of input,
/// weights, gate, up and down.
void addGradients(const Mixture &of, const Tensor &gradient, int64_t token,
                  int64_t choice, int64_t expert, int64_t f, Tensors &to) {
  double gate = of.projected(of.gate, expert, f, token),
         up = of.projected(of.up, expert, f, token), dinner = 0,
         weight = of.weights[choice];
  auto [value, slope] = activated(of.function, gate);
  double inner = of.inner.rounded(weight * value * up, of.types);
  for (int64_t h = 0; h < of.embed(); ++h) {
    double dy = gradient[token * of.embed() + h];
    dinner += of.down.at({expert, h, f}) * dy;
    to[4].at({expert, h, f}) += dy * inner;
  }
  double dgate = of.dgate.rounded(dinner * weight * slope * up, of.types),
         dup = of.dup.rounded(dinner * weight * value, of.types);
  to[1][choice] += dinner * value * up;
  for (int64_t h = 0; h < of.embed(); ++h) {
    double x = of.input[token * of.embed() + h];
    to[0][token * of.embed() + h] +=
        of.gate.at({expert, f, h}) * dgate + of.up.at({expert, f, h}) * dup;
    to[2].at({expert, f, h}) += dgate * x;
    to[3].at({expert, f, h}) += dup * x;
  }
}

Tensors gradientsOf(const Mixture &of, const Tensor &gradient, Tensors made) {
  of.forEachChoice([&](int64_t token, int64_t choice, int64_t expert) {
    for (int64_t f = 0; f < of.width(); ++f)
      addGradients(of, gradient, token, choice, expert, f, made);
  });
  return made;
}
} // namespace

/// Operands of one op by their number, as all ops of a kind have them.
static Mixture mixtureOf(Operation *op, Activation function,
                         ArrayRef<Tensor> operands, const Tensor *first,
                         MutableOperandRange scales) {
  ArrayRef<Tensor> of;
  if (!scales.empty())
    of = operands.slice(scales[0].getOperandNumber(), scales.size());
  return Mixture(function, operands, first, of, op->getContext());
}

template <typename Op>
static Mixture mixtureOf(Op op, ArrayRef<Tensor> operands) {
  MutableOperandRange first = op.getFirstExpertMutable();
  return mixtureOf(op, op.getFunction(), operands,
                   first.empty() ? nullptr
                                 : &operands[first[0].getOperandNumber()],
                   op.getRowScalesMutable());
}

static Tensors evaluate(ExpertsOp op, ArrayRef<Tensor> operands) {
  Mixture of = mixtureOf(op, operands);
  Tensors made = {mixed(of, Tensor::zeros(op.getResult().getType()))};
  for (Value magnitude : op.getRowMagnitudes())
    made.push_back(Tensor::zeros(magnitude.getType()));
  if (made.size() > 1)
    of.tellMagnitudes(MutableArrayRef(made).drop_front(), false);
  return made;
}

static Tensors evaluate(ExpertsGradOp op, ArrayRef<Tensor> operands) {
  Mixture of = mixtureOf(op, operands);
  Tensors gradients;
  for (Type type : op->getResultTypes())
    gradients.push_back(Tensor::zeros(type));
  Tensors made = gradientsOf(of, operands[6], gradients);
  if (!op.getRowMagnitudes().empty())
    of.tellMagnitudes(MutableArrayRef(made).take_back(2), true);
  return made;
}

static void addTo(Tensor &sum, const Tensor &more, bool isMaximum) {
  for (int64_t i = 0; i < sum.size(); ++i)
    sum[i] = isMaximum ? std::max(sum[i], more[i]) : sum[i] + more[i];
}

/// Those of a token with a place in the first round go nowhere any more.
static Tensor behindFirst(const Tensor &choices, const Tensor &places,
                          const Tensor &ranks) {
  Tensor left = choices;
  int64_t k = choices.getShape().back(), room = ranks.getShape().back();
  for (int64_t i = 0; i < left.size(); ++i)
    for (int64_t j = 0; j < room; ++j)
      if (places[i / k * room + j] >= 0)
        left[i] = -1;
  return left;
}

namespace {
/// What ranks that exchange tokens have, by operand of the op.
struct Exchanged {
  Activation function;
  size_t first, gradient; // operands; the latter 0: none
  SmallVector<Type> results;
  Operation *op;
  MutableOperandRange scales;

  size_t countSums() const { return gradient == 0 ? 1 : 5; }
};
} // namespace

static Exchanged exchangedBy(Operation *op) {
  SmallVector<Type> results(op->getResultTypes());
  auto numberOf = [&](Value value) -> size_t {
    return value ? llvm::find(op->getOperands(), value) - op->operand_begin()
                 : 0;
  };
  if (auto experts = dyn_cast<ExpertsOp>(op))
    return {experts.getFunction(),
            numberOf(experts.getFirstExpert()),
            0,
            results,
            op,
            experts.getRowScalesMutable()};
  if (auto grad = dyn_cast<ExpertsGradOp>(op))
    return {
        grad.getFunction(),
        static_cast<size_t>(grad.getFirstExpertMutable()[0].getOperandNumber()),
        static_cast<size_t>(grad.getGradientMutable().getOperandNumber()),
        results,
        op,
        grad.getRowScalesMutable()};
  auto rounds = cast<ExpertRoundsOp>(op);
  auto gradient = rounds.getGradientMutable();
  return {
      rounds.getFunction(),
      static_cast<size_t>(rounds.getFirstExpertMutable().getOperandNumber()),
      gradient.empty() ? 0
                       : static_cast<size_t>(gradient[0].getOperandNumber()),
      results,
      op,
      rounds.getRowScalesMutable()};
}

static Tensors madeOf(const Exchanged &of, ArrayRef<Tensor> tokens,
                      ArrayRef<Tensor> experts) {
  constexpr size_t firstMatrix = 3;
  Tensors both(tokens.begin(), tokens.begin() + firstMatrix);
  both.append(experts.begin() + firstMatrix, experts.end());
  Mixture mixture =
      mixtureOf(of.op, of.function, both, &experts[of.first], of.scales);
  Tensors made;
  for (Type type : of.results)
    made.push_back(Tensor::zeros(type));
  if (of.gradient == 0)
    made[0] = mixed(mixture, made[0]);
  else
    made = gradientsOf(mixture, tokens[of.gradient], made);
  if (made.size() > of.countSums())
    mixture.tellMagnitudes(MutableArrayRef(made).drop_front(of.countSums()),
                           of.gradient != 0);
  return made;
}

std::vector<Tensors> evaluateExchange(Operation *op,
                                      std::vector<Tensors> operands) {
  constexpr size_t choices = 1, firstOfMatrix = 2;
  Exchanged of = exchangedBy(op);
  auto rounds = dyn_cast<ExpertRoundsOp>(op);
  std::vector<Tensors> results(operands.size());
  for (auto [own, rank] : llvm::zip_equal(results, operands)) {
    for (Type type : of.results)
      own.push_back(Tensor::zeros(type));
    if (!rounds)
      continue;
    for (size_t i = 0; i < own.size(); ++i)
      if (Value sum = rounds.sumOf(i))
        own[i] = rank[llvm::find(op->getOperands(), sum) - op->operand_begin()];
    auto numberOf = [](OpOperand &operand) {
      return operand.getOperandNumber();
    };
    rank[choices] =
        behindFirst(rank[choices], rank[numberOf(rounds.getPlacesMutable())],
                    rank[numberOf(rounds.getRanksMutable())]);
  }
  for (auto [tokens, ofTokens] : llvm::enumerate(operands))
    for (auto [experts, ofExperts] : llvm::enumerate(operands))
      for (auto [i, made] : llvm::enumerate(madeOf(of, ofTokens, ofExperts))) {
        bool isMaximum = i >= of.countSums(),
             isOfExperts = isMaximum || (of.gradient && i >= firstOfMatrix);
        addTo(results[isOfExperts ? experts : tokens][i], made, isMaximum);
      }
  return results;
}

void addExperts(Evaluators &to) {
  to.add<ExpertsOp>([](ExpertsOp op, ArrayRef<Tensor> operands) -> Results {
    return evaluate(op, operands);
  });
  to.add<ExpertsGradOp>(
      [](ExpertsGradOp op, ArrayRef<Tensor> operands) -> Results {
        return evaluate(op, operands);
      });
}

} // namespace meshwork::interpreter
