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

/// One query's probabilities, and the factors of dropout.
struct Row {
  Values p, keep;
  double lse;
};

struct Inputs {
  const AttentionCase &c;
  Values q, k, v, dout;
  Heads queries, keys;

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
    Row row{Values(c.s), Values(c.s), 0};
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < c.s; ++j) {
      double score = 0;
      for (int64_t e = 0; e < c.d; ++e)
        score += q[queries.at(b, r, h, e)] * k[keys.at(b, j, kv, e)];
      row.p[j] =
          sees(b, i, j) ? score * static_cast<double>(c.scale) : -INFINITY;
      row.keep[j] = keepFactor(b, h, i, j);
      largest = std::max(largest, row.p[j]);
    }
    for (double &p : row.p)
      sum += p = std::exp(p - largest);
    for (double &p : row.p)
      p /= sum;
    row.lse = largest + std::log(sum);
    return row;
  }
};

void addForward(const Inputs &in, const Row &row, int64_t b, int64_t h,
                int64_t i, AttentionReference &result) {
  int64_t kv = h / (in.c.heads / in.c.kvHeads);
  result.lse[(b * in.c.heads + h) * in.c.queries() + i] = row.lse;
  for (int64_t j = 0; j < in.c.s; ++j)
    for (int64_t e = 0; e < in.c.d; ++e)
      result.out[in.queries.at(b, i, h, e)] +=
          row.p[j] * row.keep[j] * in.v[in.keys.at(b, j, kv, e)];
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
  for (int64_t j = 0; j < c.s; ++j) {
    double ds = row.p[j] * (dp[j] - delta) * static_cast<double>(c.scale);
    for (int64_t e = 0; e < c.d; ++e) {
      int64_t qe = in.queries.at(b, i, h, e), ke = in.keys.at(b, j, kv, e);
      result.dv[ke] += row.p[j] * row.keep[j] * in.dout[qe];
      result.dq[qe] += ds * in.k[ke];
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
  forward.out = program.add(c.dtype, queryShape);
  forward.lse = program.add(DType::f32, {c.b, c.heads, c.queries()});
  backward.q = forward.q;
  backward.k = forward.k;
  backward.v = forward.v;
  backward.out = forward.out;
  backward.lse = forward.lse;
  backward.dout = program.add(c.dtype, queryShape);
  forward.scale = backward.scale = c.scale;
  forward.causal = backward.causal = c.causal;
  forward.window = backward.window = c.window;
  addDropout();
  addDocuments();
  addPositions();
  if (c.empty)
    return;
  int64_t queryCount = countOf(queryShape);
  int64_t keyCount = c.b * c.s * c.kvHeads * c.d;
  program.write(forward.q, randomValues(queryCount, c.dtype, 11));
  program.write(forward.k, randomValues(keyCount, c.dtype, 12));
  program.write(forward.v, randomValues(keyCount, c.dtype, 13));
  program.write(backward.dout, randomValues(queryCount, c.dtype, 14));
}

void AttentionProblem::addOperands() {
  const AttentionCase &c = shape;
  Dims queryShape = {c.b, c.queries(), c.heads, c.d};
  Dims keyShape = {c.b, c.s, c.kvHeads, c.d};
  forward.q = program.add(c.dtype, queryShape);
  forward.k = program.add(c.dtype, keyShape);
  forward.v = program.add(c.dtype, keyShape);
  backward.dq = program.add(c.dtype, queryShape);
  backward.dk = program.add(c.dtype, keyShape);
  backward.dv = program.add(c.dtype, keyShape);
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

void AttentionProblem::addDropout() {
  if (shape.rate == 0)
    return;
  plan::DropoutT dropout;
  dropout.stream = streamOfTest;
  dropout.threshold = static_cast<uint32_t>(shape.rate * 4294967296.0);
  dropout.keep_scale = static_cast<float>(1 / (1 - shape.rate));
  dropout.random = program.add(
      DType::i32, {3}, {double(seed), double(step), double(shape.firstSample)});
  forward.dropout = std::make_unique<plan::DropoutT>(dropout);
  backward.dropout = std::make_unique<plan::DropoutT>(dropout);
}

void AttentionProblem::addDocuments() {
  if (shape.documents.empty())
    return;
  Values begins;
  for (int64_t b = 0; b < shape.b; ++b)
    for (int64_t r = 0; r < shape.queries(); ++r)
      begins.push_back(
          static_cast<double>(documentOf(shape, b, shape.queryOf(r))));
  forward.documents = backward.documents =
      program.add(DType::i32, {shape.b, shape.queries()}, begins);
}

void AttentionProblem::addPositions() {
  if (!shape.rows.empty())
    forward.positions = backward.positions =
        program.add(DType::i32, {shape.queries()},
                    Values(shape.rows.begin(), shape.rows.end()));
}

AttentionReference AttentionProblem::reference() const {
  const AttentionCase &c = shape;
  Inputs in{c,
            program.read(forward.q),
            program.read(forward.k),
            program.read(forward.v),
            program.read(backward.dout),
            {c.queries(), c.heads, c.d},
            {c.s, c.kvHeads, c.d}};
  AttentionReference result{
      Values(in.q.size()), Values(c.b * c.heads * c.queries(), -INFINITY),
      Values(in.q.size()), Values(in.k.size()), Values(in.k.size())};
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
