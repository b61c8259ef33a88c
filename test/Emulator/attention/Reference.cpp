#include "test/Emulator/attention/Reference.h"
#include "runtime/device/cpu/Philox.h"

#include <cmath>

namespace meshwork::attention::test {
namespace {

constexpr double u = 0x1p-24;

struct Row {
  Values p, keep, slope; // of each key
  double lse = 0, error = 0;
};

class Computation {
public:
  Computation(const Case &c, const Inputs &in)
      : c(c), in(in), r(c.bf16 ? 0x1p-9 : u),
        result{Result(in.q.size()),
               Result(static_cast<size_t>(c.batch * c.heads * c.rows())),
               Result(in.q.size()), Result(in.k.size()), Result(in.k.size())} {}

  Reference run() {
    for (long long b = 0; b < c.batch; ++b)
      for (long long h = 0; h < c.heads; ++h)
        for (long long i = 0; i < c.rows(); ++i) {
          if (c.queryOf(i) < 0) {
            result.lse.value[lseAt(b, h, i)] = -INFINITY;
            continue;
          }
          Row row = rowOf(b, h, i);
          if (row.lse == -INFINITY) { // It sees no key.
            result.lse.value[lseAt(b, h, i)] = -INFINITY;
            continue;
          }
          addForward(row, b, h, i);
          addBackward(row, b, h, i);
        }
    for (Result *gradient : {&result.dq, &result.dk, &result.dv})
      for (size_t e = 0; e < gradient->value.size(); ++e)
        gradient->bound[e] += r * std::fabs(gradient->value[e]);
    for (Result *each :
         {&result.out, &result.lse, &result.dq, &result.dk, &result.dv})
      for (double &bound : each->bound)
        bound = 2 * bound + 0x1p-100; // Powers below 2^-126 are zero.
    return std::move(result);
  }

private:
  size_t queryAt(long long b, long long i, long long h) const {
    return static_cast<size_t>(((b * c.rows() + i) * c.heads + h) * c.d);
  }
  size_t lseAt(long long b, long long h, long long i) const {
    return static_cast<size_t>((b * c.heads + h) * c.rows() + i);
  }
  size_t keyAt(long long b, long long j, long long h) const {
    return static_cast<size_t>(
        ((b * c.columns() + j) * c.kvHeads + h / (c.heads / c.kvHeads)) * c.d);
  }
  /// Row `i`, column `j`.
  bool sees(long long b, long long i, long long j) const {
    long long query = c.queryOf(i), key = c.keyOf(j);
    return key >= 0 && (!c.causal || key <= query) &&
           (c.window == 0 || query - key < c.window) &&
           key >= in.documents[static_cast<size_t>(b * c.rows() + i)];
  }

  double keepFactor(long long b, long long h, long long i, long long j) const {
    if (c.rate == 0)
      return 1;
    uint64_t head =
        static_cast<uint64_t>((in.firstSample + b) * c.globalHeads() + h +
                              (c.someHeads ? in.firstHead : 0));
    uint64_t index =
        (head * c.sequence + c.queryOf(i)) * c.sequence + c.keyOf(j);
    runtime::cpu::PhiloxStream stream{static_cast<uint32_t>(in.seed),
                                      dropoutStream,
                                      static_cast<uint32_t>(in.step)};
    return runtime::cpu::philoxWord(stream, index) >= c.threshold()
               ? static_cast<double>(c.keepScale())
               : 0;
  }

  /// Sum of a * b from the two places on, and of its absolute terms.
  double dot(const Values &a, size_t i, const Values &b, size_t j,
             double &magnitude) const {
    double sum = magnitude = 0;
    for (long long e = 0; e < c.d; ++e) {
      sum += a[i + e] * b[j + e];
      magnitude += std::fabs(a[i + e] * b[j + e]);
    }
    return sum;
  }

  Row rowOf(long long b, long long h, long long i) const {
    Row row{Values(c.columns(), -INFINITY), Values(c.columns()),
            Values(c.columns(), 1)};
    double largest = -INFINITY, magnitude, most = 0, sum = 0;
    for (long long j = 0; j < c.columns(); ++j) {
      if (!sees(b, i, j))
        continue;
      row.p[j] = dot(in.q, queryAt(b, i, h), in.k, keyAt(b, j, h), magnitude) *
                 static_cast<double>(c.scale);
      row.keep[j] = keepFactor(b, h, i, j);
      if (double cap = static_cast<double>(c.cap); cap > 0) {
        double share = std::tanh(row.p[j] / cap);
        row.p[j] = cap * share;
        row.slope[j] = 1 - share * share;
      }
      largest = std::max(largest, row.p[j]);
      most =
          std::max(most, magnitude * std::fabs(static_cast<double>(c.scale)));
    }
    row.lse = largest;
    if (largest == -INFINITY)
      return row;
    for (double &p : row.p)
      sum += p = std::exp(p - largest);
    for (double &p : row.p)
      p /= sum;
    row.lse = largest + std::log(sum);
    // Of a score and of its place in the exponent, for p and for the row's sum.
    // A cap's tangent and its product are rounded too.
    row.error = 2 * static_cast<double>(c.d + 4) * u * most + 0x1p-20 +
                16 * u * static_cast<double>(c.cap);
    return row;
  }

  void addForward(const Row &row, long long b, long long h, long long i) {
    size_t at = lseAt(b, h, i), to = queryAt(b, i, h);
    double sums = static_cast<double>(c.columns()) * u;
    result.lse.value[at] = row.lse;
    result.lse.bound[at] = row.error + sums + 4 * u * std::fabs(row.lse);
    for (long long e = 0; e < c.d; ++e) {
      double value = 0, magnitude = 0;
      for (long long j = 0; j < c.columns(); ++j) {
        if (row.p[j] == 0)
          continue;
        double term = row.p[j] * row.keep[j] * in.v[keyAt(b, j, h) + e];
        value += term;
        magnitude += std::fabs(term);
      }
      result.out.value[to + e] = value;
      result.out.bound[to + e] =
          (row.error + r + sums) * magnitude + r * std::fabs(value);
    }
  }

  void addBackward(const Row &row, long long b, long long h, long long i) {
    size_t from = queryAt(b, i, h);
    double places = static_cast<double>(c.d) * u, magnitude, deltaError = 0;
    double delta = dot(in.dout, from, result.out.value, from, magnitude);
    for (long long e = 0; e < c.d; ++e)
      deltaError += std::fabs(in.dout[from + e]) * result.out.bound[from + e];
    deltaError += places * magnitude;
    double sums = static_cast<double>(c.columns() * (c.heads / c.kvHeads)) * u,
           error = 2 * row.error + r;
    for (long long j = 0; j < c.columns(); ++j) {
      if (row.p[j] == 0)
        continue;
      size_t key = keyAt(b, j, h);
      double scale = static_cast<double>(c.scale) * row.slope[j];
      // The slope is as wrong as the score's share of the cap, twice.
      double slopeError =
          c.cap > 0 ? std::fabs(static_cast<double>(c.scale)) *
                          (2 * row.error / static_cast<double>(c.cap) + 4 * u)
                    : 0;
      double dprob = dot(in.dout, from, in.v, key, magnitude) * row.keep[j];
      double ds = scale * row.p[j] * (dprob - delta),
             dropped = row.p[j] * row.keep[j];
      double dsError = std::fabs(scale) * row.p[j] *
                           (places * magnitude * row.keep[j] + deltaError) +
                       (error + sums) * std::fabs(ds) +
                       slopeError * row.p[j] * std::fabs(dprob - delta);
      for (long long e = 0; e < c.d; ++e) {
        add(result.dq, from + e, ds * in.k[key + e],
            dsError * std::fabs(in.k[key + e]));
        add(result.dk, key + e, ds * in.q[from + e],
            dsError * std::fabs(in.q[from + e]));
        double term = dropped * in.dout[from + e];
        add(result.dv, key + e, term, (error + sums) * std::fabs(term));
      }
    }
  }
  static void add(Result &to, size_t at, double value, double bound) {
    to.value[at] += value;
    to.bound[at] += bound;
  }

  const Case &c;
  const Inputs &in;
  double r;
  Reference result;
};
} // namespace

Reference attend(const Case &shape, const Inputs &inputs) {
  return Computation(shape, inputs).run();
}

} // namespace meshwork::attention::test
