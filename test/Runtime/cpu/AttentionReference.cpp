#include "test/Runtime/cpu/AttentionReference.h"

#include <cmath>

#include "runtime/device/cpu/Philox.h"

namespace meshwork::runtime::test {
namespace {

constexpr int32_t seed = 42, step = 7;
constexpr uint32_t streamOfTest = 0x9e3779b9;

/// Row-major [b, s, heads, d].
struct Heads {
  int64_t s, heads, d;
  int64_t at(int64_t b, int64_t i, int64_t h, int64_t e) const {
    return ((b * s + i) * heads + h) * d + e;
  }
};

/// Where the document of query `i` of sample `b` begins.
int64_t documentOf(const AttentionCase &c, int64_t b, int64_t i) {
  int64_t begin = 0;
  for (int64_t at : c.documents)
    if (at + b <= i)
      begin = at + b;
  return begin;
}

/// One query's probabilities among all keys, and the factors of dropout; the
/// share of them that the keys have that are there.
struct Row {
  Values p, keep, slope;
  double lse, share;
};

struct Inputs {
  const AttentionCase &c;
  Values q, k, v, dout; // k and v with all keys
  Heads queries, keys, keysThere;

  bool sees(int64_t b, int64_t i, int64_t j) const {
    return (!c.causal || j <= i) && (c.window == 0 || i - j < c.window) &&
           j >= documentOf(c, b, i);
  }

  double keepFactor(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (c.rate == 0)
      return 1;
    uint64_t sample = static_cast<uint64_t>(c.firstSample) + b;
    uint64_t index = ((sample * c.heads + h) * c.s + i) * c.s + j;
    cpu::PhiloxStream stream{seed, streamOfTest, step};
    bool kept = cpu::philoxWord(stream, index) >=
                static_cast<uint32_t>(c.rate * 4294967296.0);
    return kept ? static_cast<float>(1 / (1 - c.rate)) : 0;
  }

  /// Of the query in row `r` of q.
  Row row(int64_t b, int64_t h, int64_t r) const {
    int64_t kv = h / (c.heads / c.kvHeads), i = c.queryOf(r);
    Row row{Values(c.s), Values(c.s), Values(c.s, 1), 0, 0};
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < c.s; ++j) {
      double score = 0;
      for (int64_t e = 0; e < c.d; ++e)
        score += q[queries.at(b, r, h, e)] * k[keys.at(b, j, kv, e)];
      score *= static_cast<double>(c.scale);
      if (double cap = static_cast<double>(c.cap); cap > 0) {
        double share = std::tanh(score / cap);
        score = cap * share;
        row.slope[j] = 1 - share * share;
      }
      row.p[j] = sees(b, i, j) ? score : -INFINITY;
      row.keep[j] = keepFactor(b, h, i, j);
      largest = std::max(largest, row.p[j]);
    }
    for (double &p : row.p)
      sum += p = std::exp(p - largest);
    for (double &p : row.p)
      p /= sum;
    row.lse = largest + std::log(sum);
    for (int64_t at = 0; at < c.keyRows(); ++at)
      row.share += c.keyOf(at) < 0 ? 0 : row.p[c.keyOf(at)];
    return row;
  }
};

void addForward(const Inputs &in, const Row &row, int64_t b, int64_t h,
                int64_t i, AttentionReference &result) {
  const AttentionCase &c = in.c;
  int64_t kv = h / (c.heads / c.kvHeads);
  int64_t at = (b * c.heads + h) * c.queries() + i;
  result.wholeLse[at] = row.lse;
  result.lse[at] = row.lse + std::log(row.share);
  auto add = [&](Values &out, int64_t j, double weight) {
    for (int64_t e = 0; e < c.d; ++e)
      out[in.queries.at(b, i, h, e)] +=
          weight * row.keep[j] * in.v[in.keys.at(b, j, kv, e)];
  };
  for (int64_t j = 0; j < c.s; ++j)
    add(result.wholeOut, j, row.p[j]);
  for (int64_t r = 0; r < c.keyRows() && row.share > 0; ++r)
    if (c.keyOf(r) >= 0)
      add(result.out, c.keyOf(r), row.p[c.keyOf(r)] / row.share);
}

void addBackward(const Inputs &in, const Row &row, int64_t b, int64_t h,
                 int64_t i, AttentionReference &result) {
  const AttentionCase &c = in.c;
  int64_t kv = h / (c.heads / c.kvHeads);
  Values dp(c.s);
  double delta = 0;
  for (int64_t j = 0; j < c.s; ++j) {
    for (int64_t e = 0; e < c.d; ++e)
      dp[j] += row.keep[j] * in.dout[in.queries.at(b, i, h, e)] *
               in.v[in.keys.at(b, j, kv, e)];
    delta += row.p[j] * dp[j];
  }
  for (int64_t r = 0; r < c.keyRows(); ++r) {
    int64_t j = c.keyOf(r);
    if (j < 0)
      continue;
    double ds = row.p[j] * (dp[j] - delta) * row.slope[j] *
                static_cast<double>(c.scale);
    for (int64_t e = 0; e < c.d; ++e) {
      int64_t qe = in.queries.at(b, i, h, e), ke = in.keysThere.at(b, r, kv, e);
      result.dv[ke] += row.p[j] * row.keep[j] * in.dout[qe];
      result.dq[qe] += ds * in.k[in.keys.at(b, j, kv, e)];
      result.dk[ke] += ds * in.q[qe];
    }
  }
}

} // namespace

AttentionProblem::AttentionProblem(const AttentionCase &c) : shape(c) {
  if (c.fused)
    addFused();
  else
    addOperands();
  Dims queryShape = {c.b, c.queries(), c.heads, c.d};
  forward.out = program.add(c.resultType(), queryShape);
  forward.lse = program.add(DType::f32, {c.b, c.heads, c.queries()});
  backward.q = forward.q;
  backward.k = forward.k;
  backward.v = forward.v;
  bool all = c.keys.empty() && !c.f32Results;
  backward.out = all ? forward.out : program.add(c.dtype, queryShape);
  backward.lse =
      all ? forward.lse : program.add(DType::f32, {c.b, c.heads, c.queries()});
  backward.dout = program.add(c.dtype, queryShape);
  plan::AttentionPartT part;
  part.scale = c.scale;
  part.cap = c.cap;
  part.causal = c.causal;
  part.window = c.window;
  addDropout(part);
  addDocuments(part);
  addPositions(part);
  forward.part = std::make_unique<plan::AttentionPartT>(part);
  backward.part = std::make_unique<plan::AttentionPartT>(part);
  if (!c.empty)
    writeInputs();
}

void AttentionProblem::writeInputs() {
  const AttentionCase &c = shape;
  int64_t queryCount = c.b * c.queries() * c.heads * c.d;
  int64_t keyCount = c.b * c.s * c.kvHeads * c.d;
  wholeK = randomValues(keyCount, c.dtype, 12);
  wholeV = randomValues(keyCount, c.dtype, 13);
  program.write(forward.q, randomValues(queryCount, c.dtype, 11));
  program.write(forward.k, ofKeys(wholeK));
  program.write(forward.v, ofKeys(wholeV));
  program.write(backward.dout, randomValues(queryCount, c.dtype, 14));
}

/// The rows that are there; padding is NaN.
Values AttentionProblem::ofKeys(const Values &whole) const {
  const AttentionCase &c = shape;
  int64_t width = c.kvHeads * c.d;
  Values there(c.b * c.keyRows() * width, NAN);
  for (int64_t b = 0; b < c.b; ++b)
    for (int64_t r = 0; r < c.keyRows(); ++r)
      if (c.keyOf(r) >= 0)
        std::copy_n(whole.begin() + (b * c.s + c.keyOf(r)) * width, width,
                    there.begin() + (b * c.keyRows() + r) * width);
  return there;
}

void AttentionProblem::writeWhole(const AttentionReference &reference) {
  if (backward.out == forward.out)
    return;
  program.write(backward.out, reference.wholeOut);
  program.write(backward.lse, reference.wholeLse);
}

void AttentionProblem::addOperands() {
  const AttentionCase &c = shape;
  Dims queryShape = {c.b, c.queries(), c.heads, c.d};
  Dims keyShape = {c.b, c.keyRows(), c.kvHeads, c.d};
  forward.q = program.add(c.dtype, queryShape);
  forward.k = program.add(c.dtype, keyShape);
  forward.v = program.add(c.dtype, keyShape);
  backward.dq = program.add(c.resultType(), queryShape);
  backward.dk = program.add(c.resultType(), keyShape);
  backward.dv = program.add(c.resultType(), keyShape);
}

void AttentionProblem::addFused() {
  const AttentionCase &c = shape;
  Dims part = {c.b, c.s, c.heads, c.d};
  int64_t width = c.heads * c.d;
  Dims strides = {c.s * 3 * width, 3 * width, c.d, 1};
  uint32_t values = program.addBuffer(c.dtype, c.b * c.s * 3 * width);
  uint32_t gradients = program.addBuffer(c.dtype, c.b * c.s * 3 * width);
  auto slice = [&](uint32_t buffer, int64_t index) {
    return program.addView(buffer, c.dtype, part, strides, index * width);
  };
  forward.q = slice(values, 0);
  forward.k = slice(values, 1);
  forward.v = slice(values, 2);
  backward.dq = slice(gradients, 0);
  backward.dk = slice(gradients, 1);
  backward.dv = slice(gradients, 2);
}

void AttentionProblem::addDropout(plan::AttentionPartT &to) {
  if (shape.rate == 0)
    return;
  plan::DropoutT dropout;
  dropout.stream = streamOfTest;
  dropout.threshold = static_cast<uint32_t>(shape.rate * 4294967296.0);
  dropout.keep_scale = static_cast<float>(1 / (1 - shape.rate));
  dropout.random = program.add(
      DType::i32, {3}, {double(seed), double(step), double(shape.firstSample)});
  to.dropout = std::make_unique<plan::DropoutT>(dropout);
}

void AttentionProblem::addDocuments(plan::AttentionPartT &to) {
  if (shape.documents.empty())
    return;
  Values begins;
  for (int64_t b = 0; b < shape.b; ++b)
    for (int64_t r = 0; r < shape.queries(); ++r)
      begins.push_back(
          static_cast<double>(documentOf(shape, b, shape.queryOf(r))));
  to.documents = program.add(DType::i32, {shape.b, shape.queries()}, begins);
}

void AttentionProblem::addPositions(plan::AttentionPartT &to) {
  if (!shape.rows.empty())
    to.positions = program.add(DType::i32, {shape.queries()},
                               Values(shape.rows.begin(), shape.rows.end()));
  if (shape.keys.empty())
    return;
  to.key_positions = program.add(DType::i32, {shape.keyRows()},
                                 Values(shape.keys.begin(), shape.keys.end()));
  to.total_keys = shape.s;
}

AttentionReference AttentionProblem::reference() const {
  const AttentionCase &c = shape;
  bool all = c.keys.empty();
  Inputs in{c,
            program.read(forward.q),
            all ? program.read(forward.k) : wholeK,
            all ? program.read(forward.v) : wholeV,
            program.read(backward.dout),
            {c.queries(), c.heads, c.d},
            {c.s, c.kvHeads, c.d},
            {c.keyRows(), c.kvHeads, c.d}};
  Values ofQueries(in.q.size()), ofKeys(c.b * c.keyRows() * c.kvHeads * c.d);
  Values lse(c.b * c.heads * c.queries(), -INFINITY);
  AttentionReference result{ofQueries, lse,    ofQueries, lse,
                            ofQueries, ofKeys, ofKeys};
  for (int64_t b = 0; b < c.b; ++b)
    for (int64_t h = 0; h < c.heads; ++h)
      for (int64_t i = 0; i < c.queries(); ++i) {
        if (c.queryOf(i) < 0)
          continue;
        Row row = in.row(b, h, i);
        addForward(in, row, b, h, i, result);
        addBackward(in, row, b, h, i, result);
      }
  return result;
}

} // namespace meshwork::runtime::test
