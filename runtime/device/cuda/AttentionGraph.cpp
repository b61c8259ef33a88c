#include "runtime/device/cuda/AttentionGraph.h"
#include <limits>
#include <utility>

namespace meshwork::runtime::cuda {
namespace {
namespace mode = dnn::pointwiseMode;
using dnn::dataType::bf16, dnn::dataType::boolean, dnn::dataType::f32,
    dnn::dataType::i32;

/// What both graphs are made of.
struct Builder {
  explicit Builder(const AttentionProblem &problem)
      : problem(problem), scores(problem.q.dims) {
    scores[3] = problem.k.dims[2];
    rows = scores;
    rows[3] = 1;
    made.q = tensor(problem.q);
    made.k = transposed(problem.k);
    made.out = made.stats = 0;
  }

  DnnGraph &graph() { return made.graph; }

  size_t tensor(const AttentionTensor &of) {
    return graph().memory(bf16, of.dims, of.strides);
  }
  size_t transposed(AttentionTensor of) {
    std::swap(of.dims[2], of.dims[3]);
    std::swap(of.strides[2], of.strides[3]);
    return tensor(of);
  }
  size_t row(int mode, size_t x, std::optional<size_t> b) {
    size_t out = graph().between(f32, rows);
    graph().pointwise(mode, x, b, out);
    return out;
  }
  /// One operation on scores, whose result is of `type`.
  size_t score(int mode, size_t x, std::optional<size_t> b, int type = f32) {
    size_t out = graph().between(type, scores);
    graph().pointwise(mode, x, b, out);
    return out;
  }
  size_t product(size_t a, size_t b) {
    size_t out = graph().between(f32, scores);
    graph().matmul(a, b, out);
    return out;
  }

  size_t scaledScores(size_t scale) {
    return score(mode::mul, product(made.q, made.k), scale);
  }

  /// Of axis 2 the query's number, of axis 3 the key's.
  size_t indexAlong(int64_t axis, size_t of) {
    size_t out = score(mode::index, of, std::nullopt, i32);
    graph().operations.back().axis = axis;
    return out;
  }

  size_t select(size_t of, size_t visible) {
    size_t hidden = graph().value(-std::numeric_limits<float>::infinity());
    size_t out = score(mode::select, of, hidden);
    graph().operations.back().t = visible;
    return out;
  }

  size_t compare(int how, size_t a, size_t b) {
    size_t out = score(how, a, b, boolean);
    graph().operations.back().precision = boolean;
    return out;
  }

  size_t masked(size_t of) {
    if (problem.causal) {
      size_t query = indexAlong(2, of), key = indexAlong(3, of);
      of = select(of, compare(mode::greaterOrEqual, query, key));
    }
    if (problem.window > 0) {
      size_t query = indexAlong(2, of), key = indexAlong(3, of);
      size_t width = graph().value(static_cast<int32_t>(problem.window));
      size_t end = score(mode::add, key, width, i32);
      graph().operations.back().precision = i32;
      graph().operations.back().axis = 3;
      of = select(of, compare(mode::greater, end, query));
    }
    if (problem.documents) {
      Dims4 dims = {rows[0], 1, rows[2], 1};
      made.documents = graph().memory(i32, dims, denseStrides(dims));
      of = select(
          of, compare(mode::greaterOrEqual, indexAlong(3, of), made.documents));
    }
    return of;
  }

  const AttentionProblem &problem;
  Dims4 scores, rows;
  AttentionGraph made;
};

class Gradient : Builder {
public:
  explicit Gradient(const AttentionProblem &problem) : Builder(problem) {
    made.v = transposed(problem.v);
    made.out = tensor(problem.out);
    made.dout = tensor(problem.dout);
    made.stats = graph().memory(f32, rows, denseStrides(rows));
    made.dq = tensor(problem.dq);
    made.dk = tensor(problem.dk);
    made.dv = tensor(problem.dv);
  }

  AttentionGraph build() {
    size_t scale = graph().value(problem.scale);
    sumRows();
    size_t logits = score(mode::sub, scaledScores(scale), made.stats);
    size_t p = score(mode::exp, masked(logits), std::nullopt);
    sumOverQueries(p, made.dout, problem.dv, made.dv);
    size_t dp = product(made.dout, made.v);
    size_t difference = score(mode::sub, dp, made.rowSums);
    size_t ds = score(mode::mul, score(mode::mul, difference, p), scale);
    sumOverQueries(ds, made.q, problem.dk, made.dk);
    sumOverKeys(ds);
    return std::move(made);
  }

private:
  /// rowsum(dO O); the engines look for a scale, which is dropout's.
  void sumRows() {
    size_t products = graph().between(f32, problem.q.dims);
    graph().pointwise(mode::mul, made.dout, made.out, products);
    size_t sums = graph().between(f32, rows);
    graph().reduce(dnn::reductionOperator::sum, products, sums);
    made.rowSums = graph().memory(f32, rows, denseStrides(rows));
    graph().pointwise(mode::mul, sums, graph().value(1.0f), made.rowSums);
  }

  /// of^T with, summed over the query heads of a key head.
  void sumOverQueries(size_t of, size_t with, const AttentionTensor &like,
                      size_t out) {
    Dims4 dims = scores, strides = denseStrides(scores);
    std::swap(dims[2], dims[3]);
    std::swap(strides[2], strides[3]);
    size_t turned = graph().between(bf16, dims, strides);
    graph().reshape(of, turned);
    if (like.dims[1] == problem.q.dims[1])
      return graph().matmul(turned, with, out);
    Dims4 all = like.dims;
    all[1] = problem.q.dims[1];
    size_t perHead = graph().between(bf16, all);
    graph().matmul(turned, with, perHead);
    graph().reduce(dnn::reductionOperator::sum, perHead, out);
  }

  void sumOverKeys(size_t ds) {
    const AttentionTensor &k = problem.k;
    size_t keys = graph().between(bf16, k.dims, k.strides);
    graph().reshape(made.k, keys);
    made.dqSums =
        graph().memory(f32, problem.q.dims, denseStrides(problem.q.dims));
    graph().matmul(ds, keys, made.dqSums);
    graph().pointwise(mode::identity, made.dqSums, std::nullopt, made.dq);
  }
};

class Forward : Builder {
public:
  explicit Forward(const AttentionProblem &problem) : Builder(problem) {
    made.v = tensor(problem.v);
    made.out = tensor(problem.out);
    made.stats = graph().memory(f32, rows, denseStrides(rows));
  }

  AttentionGraph build() {
    size_t s = masked(scaledScores(graph().value(problem.scale)));
    size_t largest = graph().between(f32, rows);
    graph().reduce(dnn::reductionOperator::max, s, largest);
    size_t exponentials =
        score(mode::exp, score(mode::sub, s, largest), std::nullopt);
    size_t sum = graph().between(f32, rows);
    graph().reduce(dnn::reductionOperator::sum, exponentials, sum);
    size_t logarithm = row(mode::log, sum, std::nullopt);
    graph().pointwise(mode::add, largest, logarithm, made.stats);
    graph().matmul(score(mode::div, exponentials, sum, bf16), made.v, made.out);
    return std::move(made);
  }
};
} // namespace

absl::Status checkGraph(const AttentionProblem &problem) {
  if (!problem.keys.empty())
    return absl::UnimplementedError("a part of a sequence's keys");
  if (!problem.queries.empty())
    return absl::UnimplementedError("a part of a sequence's queries");
  if (problem.out.isF32 || problem.dq.isF32 || problem.dk.isF32 ||
      problem.dv.isF32)
    return absl::UnimplementedError("a result is f32, expected bf16");
  return absl::OkStatus();
}

AttentionGraph attentionGraph(const AttentionProblem &problem) {
  return Forward(problem).build();
}

AttentionGraph attentionGradGraph(const AttentionProblem &problem) {
  return Gradient(problem).build();
}

} // namespace meshwork::runtime::cuda
