// Attention and its gradient in double precision, with how far a device may be
// off at each element.
//
// Bounds are sums of what each rounding may change, to first order. `u` is
// 2^-24; r is half a place of the element's type, 2^-9 or 2^-24. For query i
// and key j, A_i is the largest sum of |q k scale| in the row. A probability's
// relative error e comes from products of d terms, the rounding of a score in
// the exponent, and 2^-20 for ex2, lg2 and the quotient. The bounds are:
//   out    (e + r + s u) sum p |v| + r |out|           p is rounded to r
//   lse    e + s u + 4 u |lse|
//   delta  sum |dout| error(out) + d u sum |dout out|  out is what was stored
//   ds     p (d u sum |dout v| + error(delta)) + (2 e + r) |ds|
//   dq     sum error(ds) |k| + s u sum |ds k| + r |dq| and so on
// Twice the whole allows for what is of second order.
#pragma once

#include "test/Emulator/attention/Cases.h"

#include <cstddef>
#include <vector>

namespace meshwork::attention::test {

using Values = std::vector<double>;

/// Dense row-major: [batch, rows, heads, d].
struct Inputs {
  Values q, k, v, dout;
  int seed, step, firstSample, firstHead;
  std::vector<int> documents; // [batch, rows]
};

struct Result {
  Values value, bound;
  explicit Result(size_t size) : value(size), bound(size) {}
};

struct Reference {
  Result out, lse, dq, dk, dv;
};

Reference attend(const Case &shape, const Inputs &inputs);

} // namespace meshwork::attention::test
