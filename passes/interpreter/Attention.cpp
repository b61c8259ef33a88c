// attention and its gradient, straight from the formulas: every pair of query
// and key is visited.
#include "passes/interpreter/Evaluate.h"
#include "passes/interpreter/Frame.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {
namespace {

/// What forward and backward share. Row `i` of head `h` in sample `b` is q[b,
/// i, h, :], query positionOf(i) of the sequence; it reads k[b, j, h / group,
/// :].
class Pairs {
public:
  Pairs(const AttentionTerms &terms, const Tensor &q, const Tensor &k)
      : terms(terms), q(q), k(k), batch(q.getDimSize(0)), rows(q.getDimSize(1)),
        keys(k.getDimSize(1)), heads(q.getDimSize(2)), headDim(q.getDimSize(3)),
        group(heads / k.getDimSize(2)),
        totalHeads(terms.totalHeads ? terms.totalHeads : heads),
        totalKeys(terms.totalKeys ? terms.totalKeys : keys) {}

  /// Negative: the row is padding.
  int64_t positionOf(int64_t i) const {
    return terms.positions ? static_cast<int64_t>(terms.positions->at({i})) : i;
  }
  int64_t keyOf(int64_t j) const {
    return terms.keys ? static_cast<int64_t>(terms.keys->at({j})) : j;
  }
  bool sees(int64_t b, int64_t i, int64_t j) const {
    int64_t at = positionOf(i), key = keyOf(j);
    return at >= 0 && key >= 0 && (!terms.causal || key <= at) &&
           (terms.window == 0 || at - key < terms.window) &&
           (!terms.documents || key >= terms.documents->at({b, i}));
  }
  double score(int64_t b, int64_t h, int64_t i, int64_t j) const {
    double scaled = terms.scale * dot(q, {b, i, h}, k, {b, j, h / group});
    return terms.cap > 0 ? terms.cap * std::tanh(scaled / terms.cap) : scaled;
  }
  /// The derivative of such a score by what it was before the cap.
  double slope(double score) const {
    double share = terms.cap > 0 ? score / terms.cap : 0;
    return 1 - share * share;
  }
  /// What dropout multiplies the probability of this pair with.
  double kept(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (terms.rate == 0 || terms.random.firstSample < 0)
      return 1;
    int64_t sample = b + static_cast<int64_t>(terms.random.firstSample);
    int64_t head = sample * totalHeads + h + terms.random.firstHead;
    int64_t index = (head * totalKeys + positionOf(i)) * totalKeys + keyOf(j);
    return dropoutFactor(terms.random, terms.stream, terms.rate,
                         static_cast<uint64_t>(index)) == 0
               ? 0
               : terms.keepScale;
  }
  double dot(const Tensor &x, std::array<int64_t, 3> at, const Tensor &y,
             std::array<int64_t, 3> there) const {
    double sum = 0;
    for (int64_t d = 0; d < headDim; ++d)
      sum += x.at({at[0], at[1], at[2], d}) *
             y.at({there[0], there[1], there[2], d});
    return sum;
  }
  /// x[at] += factor * y[there], over head_dim.
  void addTo(Tensor &x, std::array<int64_t, 3> at, double factor,
             const Tensor &y, std::array<int64_t, 3> there) const {
    for (int64_t d = 0; d < headDim; ++d)
      x.at({at[0], at[1], at[2], d}) +=
          factor * y.at({there[0], there[1], there[2], d});
  }

  const AttentionTerms &terms;
  const Tensor &q, &k;
  int64_t batch, rows, keys, heads, headDim, group;
  int64_t totalHeads, totalKeys; // of the whole tensor
};

/// `random` operands where the op has them; else, as in a model that is not
/// decomposed yet, the step inputs that they would be.
FailureOr<RandomInputs> randomOf(AttentionOpInterface op,
                                 const AttentionPart &part, Frame &frame) {
  if (part.terms.getRate().isZero())
    return RandomInputs();
  SmallVector<double> given;
  for (Value value : part.random)
    given.push_back(frame.get(value)[0]);
  if (given.empty())
    for (StepInput kind :
         {StepInput::seed, StepInput::step, StepInput::first_sample}) {
      Results input = frame.readInput(op, kind);
      if (failed(input))
        return failure();
      given.push_back(input->front()[0]);
    }
  return RandomInputs{given[0], given[1], given[2],
                      given.size() > 3 ? static_cast<int64_t>(given[3]) : 0};
}

FailureOr<AttentionTerms> termsOf(AttentionOpInterface op, Frame &frame) {
  AttentionPart part = op.getPart();
  FailureOr<RandomInputs> random = randomOf(op, part, frame);
  if (failed(random))
    return failure();
  auto find = [&](Value value) {
    return value ? std::optional(frame.get(value)) : std::nullopt;
  };
  AttentionTerms terms;
  terms.causal = part.terms.getCausal();
  terms.window = part.terms.getWindow();
  // As in the plan, where it is an f32.
  terms.scale = static_cast<float>(part.terms.getScale().convertToDouble());
  terms.cap = static_cast<float>(part.terms.getCap().convertToDouble());
  terms.rate = part.terms.getRate().convertToDouble();
  terms.keepScale = static_cast<float>(1 / (1 - terms.rate));
  terms.stream = part.terms.getStream();
  terms.totalHeads = part.terms.getTotalHeads();
  terms.totalKeys = part.terms.getTotalKeys();
  terms.random = *random;
  terms.documents = find(part.documents);
  terms.positions = find(part.positions);
  terms.keys = find(part.keys);
  return terms;
}
} // namespace

Tensors attend(const AttentionTerms &terms, const Tensor &q, const Tensor &k,
               const Tensor &v) {
  Pairs pairs(terms, q, k);
  Tensor out(q.getShape().vec());
  Tensor lse({pairs.batch, pairs.heads, pairs.rows});
  forEachIndex(lse.getShape(), [&](ArrayRef<int64_t> index) {
    int64_t b = index[0], h = index[1], i = index[2];
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t j = 0; j < pairs.keys; ++j)
      if (pairs.sees(b, i, j))
        largest = std::max(largest, pairs.score(b, h, i, j));
    for (int64_t j = 0; j < pairs.keys; ++j)
      if (pairs.sees(b, i, j))
        sum += std::exp(pairs.score(b, h, i, j) - largest);
    lse.at(index) = largest + std::log(sum);
    for (int64_t j = 0; j < pairs.keys; ++j)
      if (pairs.sees(b, i, j)) {
        double p = std::exp(pairs.score(b, h, i, j) - lse.at(index));
        pairs.addTo(out, {b, i, h}, p * pairs.kept(b, h, i, j), v,
                    {b, j, h / pairs.group});
      }
  });
  return {out, lse};
}

static Results evaluate(AttentionOp op, ArrayRef<Tensor> operands,
                        Frame &frame) {
  FailureOr<AttentionTerms> terms = termsOf(op, frame);
  if (failed(terms))
    return failure();
  return attend(*terms, operands[0], operands[1], operands[2]);
}

// Let p be the probabilities, m the dropout factors, o the result and g its
// gradient. Then dv = (m p)^T g, dp = m (g v^T), ds = p (dp - rowsum(g o)).
// Scores s with a cap have ds times 1 - (s / cap)^2. Last, dq = scale ds k and
// dk = scale ds^T q. The row sum of p dp is that of g o, since o = (m p) v.
Tensors attendBackward(const AttentionTerms &terms, ArrayRef<Tensor> operands) {
  const Tensor &q = operands[0], &k = operands[1], &v = operands[2];
  const Tensor &out = operands[3], &lse = operands[4], &gradient = operands[5];
  Pairs pairs(terms, q, k);
  Tensor dq(q.getShape().vec()), dk(k.getShape().vec()), dv = dk;
  forEachIndex(lse.getShape(), [&](ArrayRef<int64_t> index) {
    int64_t b = index[0], h = index[1], i = index[2];
    std::array<int64_t, 3> query = {b, i, h};
    double rowSum = pairs.dot(gradient, query, out, query);
    for (int64_t j = 0; j < pairs.keys; ++j) {
      if (!pairs.sees(b, i, j))
        continue;
      std::array<int64_t, 3> key = {b, j, h / pairs.group};
      double score = pairs.score(b, h, i, j);
      double p = std::exp(score - lse.at(index));
      double m = pairs.kept(b, h, i, j);
      double dp = m * pairs.dot(gradient, query, v, key);
      double ds = p * (dp - rowSum) * pairs.slope(score);
      pairs.addTo(dv, key, m * p, gradient, query);
      pairs.addTo(dq, query, terms.scale * ds, k, key);
      pairs.addTo(dk, key, terms.scale * ds, q, query);
    }
  });
  return {dq, dk, dv};
}

static Results evaluate(AttentionGradOp op, ArrayRef<Tensor> operands,
                        Frame &frame) {
  FailureOr<AttentionTerms> terms = termsOf(op, frame);
  if (failed(terms))
    return failure();
  return attendBackward(*terms, operands);
}

//===-- instructions --------------------------------------------------------//

static AttentionTerms termsOf(const plan::AttentionPart &part, Views &on) {
  AttentionTerms terms;
  terms.causal = part.causal();
  terms.window = part.window();
  terms.scale = part.scale();
  terms.cap = part.cap();
  terms.totalKeys = part.total_keys();
  terms.documents = on.readIf(part.documents());
  terms.positions = on.readIf(part.positions());
  terms.keys = on.readIf(part.key_positions());
  const plan::Dropout *dropout = part.dropout();
  if (!dropout)
    return terms;
  Tensor random = on.read(dropout->random());
  terms.rate = dropout->threshold() / 0x1p32;
  terms.keepScale = dropout->keep_scale();
  terms.stream = dropout->stream();
  terms.totalHeads = dropout->heads();
  terms.random = {random[0], random[1], random[2], 0};
  if (std::optional<Tensor> first = on.readIf(dropout->first_head()))
    terms.random.firstHead = static_cast<int64_t>((*first)[0]);
  return terms;
}

static void run(const plan::Attention &op, Views &on) {
  Tensors results = attend(termsOf(*op.part(), on), on.read(op.q()),
                           on.read(op.k()), on.read(op.v()));
  on.write(op.out(), results[0]);
  on.write(op.lse(), results[1]);
}

static void run(const plan::AttentionGrad &op, Views &on) {
  Tensors operands;
  for (uint32_t view : {op.q(), op.k(), op.v(), op.out(), op.lse(), op.dout()})
    operands.push_back(on.read(view));
  Tensors results = attendBackward(termsOf(*op.part(), on), operands);
  on.write(op.dq(), results[0]);
  on.write(op.dk(), results[1]);
  on.write(op.dv(), results[2]);
}

void addAttention(Evaluators &to) {
  to.add<AttentionOp>(evaluate);
  to.add<AttentionGradOp>(evaluate);
  to.add<plan::Attention>(run);
  to.add<plan::AttentionGrad>(run);
}

} // namespace meshwork::interpreter
