// Attention by the runtime's own kernels, which need no plan.
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/MeasureParts.h"
#include "runtime/device/cuda/Memory.h"
#include "runtime/device/cuda/TimeRow.h"
#include "runtime/device/cuda/TimingNumbers.h"
#include "runtime/device/cuda/WgmmaAttention.h"
#include <cmath>

namespace meshwork::runtime::cuda {
namespace {
/// Causal, of whole sequences.
struct Shape {
  int64_t batch, heads, tokens, d;

  int64_t elements() const { return batch * heads * tokens * d; }
  double keys() const { return static_cast<double>(tokens + 1) / 2; }
  /// As plans count them: what the mask hides is left out.
  double flops() const { return 4 * static_cast<double>(elements()) * keys(); }
};
/// The largest says what a GPU does; a smaller one is enough where it takes
/// that long.
constexpr Shape shapes[] = {
    {1, 1, 256, 128}, {1, 4, 1024, 128}, {4, 16, 4096, 128}};
constexpr double enoughSeconds = 2e-4;
constexpr double mostHead = 1000, mostKeys = 1e5;

/// As [batch, tokens, heads, d] in memory.
AttentionTensor tensorOf(const Shape &s) {
  return {{s.batch, s.heads, s.tokens, s.d},
          {s.tokens * s.heads * s.d, s.d, s.heads * s.d, 1}};
}

AttentionProblem problemOf(const Shape &shape) {
  AttentionProblem problem;
  for (AttentionTensor *tensor :
       {&problem.q, &problem.k, &problem.v, &problem.out, &problem.dout,
        &problem.dq, &problem.dk, &problem.dv})
    *tensor = tensorOf(shape);
  problem.lseStrides[0] = shape.heads * shape.tokens;
  problem.lseStrides[1] = shape.tokens;
  problem.scale = 1 / std::sqrt(static_cast<float>(shape.d));
  problem.causal = true;
  return problem;
}

/// Attention of one shape and its gradient, on memory of their own.
class Timed {
public:
  Timed(const Gpu &gpu, Queue &queue, const WgmmaKernels &kernels,
        const Shape &shape)
      : gpu(gpu), queue(queue), kernels(kernels), shape(shape),
        problem(problemOf(shape)) {}

  absl::Status prepare() {
    auto bytes = static_cast<uint64_t>(shape.elements()) * 2;
    auto rows = static_cast<uint64_t>(shape.batch * shape.heads * shape.tokens);
    constexpr int64_t padded = 128, ofRow = 8; // see WgmmaKernels::gradient
    workspaceBytes = static_cast<uint64_t>(
        shape.batch * shape.heads *
        ((shape.tokens + padded - 1) / padded * padded) * ofRow);
    uint64_t all = 8 * bytes + rows * sizeof(float) + workspaceBytes;
    MESHWORK_ASSIGN_OR_RETURN(memory, DeviceMemory::create(gpu, all));
    DevicePtr at = memory.address();
    for (DevicePtr *place : {&places.q, &places.k, &places.v, &places.out,
                             &places.dout, &places.dq, &places.dk, &places.dv})
      *place = std::exchange(at, at + bytes);
    places.lse = std::exchange(at, at + rows * sizeof(float));
    workspace = at;
    std::unique_ptr<Staging> staging;
    MESHWORK_ASSIGN_OR_RETURN(staging, Staging::create(gpu, queue));
    MESHWORK_RETURN_IF_ERROR(
        fillForTiming(gpu.driver(), queue, *staging, memory.address(), all));
    return queue.finish(); // before the staging goes
  }

  /// Flops a second.
  absl::StatusOr<double> forward() {
    std::unique_ptr<Operation> run;
    MESHWORK_ASSIGN_OR_RETURN(run,
                              kernels.forward(problem, places, queue.stream()));
    return rate(*run, shape.flops());
  }
  /// After forward(), whose results it reads.
  absl::StatusOr<double> gradient() {
    std::unique_ptr<Operation> run;
    MESHWORK_ASSIGN_OR_RETURN(run,
                              kernels.gradient(problem, places, workspace,
                                               workspaceBytes, queue.stream()));
    return rate(*run, 2 * shape.flops());
  }

private:
  absl::StatusOr<double> rate(Operation &run, double flops) {
    double seconds = 0;
    MESHWORK_ASSIGN_OR_RETURN(seconds, meanSeconds(gpu, queue, [&] {
                                return run.enqueue(queue.stream(), false);
                              }));
    return flops / seconds;
  }

  const Gpu &gpu;
  Queue &queue;
  const WgmmaKernels &kernels;
  Shape shape;
  AttentionProblem problem;
  AttentionPlaces places{};
  DeviceMemory memory;
  DevicePtr workspace = 0;
  uint64_t workspaceBytes = 0;
};

/// Rates forward and of the gradient.
absl::StatusOr<std::pair<double, double>> ratesOf(const Gpu &gpu, Queue &queue,
                                                  const WgmmaKernels &kernels,
                                                  const Shape &shape) {
  Timed timed(gpu, queue, kernels, shape);
  MESHWORK_RETURN_IF_ERROR(timed.prepare());
  std::pair<double, double> rates;
  MESHWORK_ASSIGN_OR_RETURN(rates.first, timed.forward());
  MESHWORK_ASSIGN_OR_RETURN(rates.second, timed.gradient());
  return rates;
}

/// The first that takes long enough.
absl::StatusOr<Shape> shapeFor(const Gpu &gpu, Queue &queue,
                               const WgmmaKernels &kernels) {
  for (const Shape &shape : shapes) {
    Timed timed(gpu, queue, kernels, shape);
    MESHWORK_RETURN_IF_ERROR(timed.prepare());
    double rate = 0;
    MESHWORK_ASSIGN_OR_RETURN(rate, timed.forward());
    if (shape.flops() / rate >= enoughSeconds)
      return shape;
  }
  return std::end(shapes)[-1];
}

AttentionRate rateOf(const Shape &whole, const Shape &narrow,
                     const Shape &shorter, double rate, double ofNarrow,
                     double ofShorter) {
  auto d = static_cast<double>(whole.d);
  double head =
             halfOf(static_cast<double>(narrow.d), ofNarrow, d, rate, mostHead),
         keys = halfOf(shorter.keys(), ofShorter, whole.keys(), rate, mostKeys);
  return {rate * (1 + head / d) * (1 + keys / whole.keys()), head, keys};
}
} // namespace

absl::Status measureAttention(const Gpu &gpu, Queue &queue, GpuWork &work) {
  absl::StatusOr<std::unique_ptr<WgmmaKernels>> kernels =
      WgmmaKernels::load(gpu.driver(), gpu.device());
  if (!kernels.ok()) { // as in a run, the plan's kernels serve
    work.whyNoAttention = std::string(kernels.status().message());
    return absl::OkStatus();
  }
  Shape whole{};
  MESHWORK_ASSIGN_OR_RETURN(whole, shapeFor(gpu, queue, **kernels));
  // As much work, in narrower heads and in shorter sequences.
  Shape narrow{whole.batch, 2 * whole.heads, whole.tokens, whole.d / 2},
      shorter{4 * whole.batch, whole.heads, whole.tokens / 4, whole.d};
  std::pair<double, double> rates, ofNarrow, ofShorter;
  MESHWORK_ASSIGN_OR_RETURN(rates, ratesOf(gpu, queue, **kernels, whole));
  MESHWORK_ASSIGN_OR_RETURN(ofNarrow, ratesOf(gpu, queue, **kernels, narrow));
  MESHWORK_ASSIGN_OR_RETURN(ofShorter, ratesOf(gpu, queue, **kernels, shorter));
  work.forward = rateOf(whole, narrow, shorter, rates.first, ofNarrow.first,
                        ofShorter.first);
  work.gradient = rateOf(whole, narrow, shorter, rates.second, ofNarrow.second,
                         ofShorter.second);
  return absl::OkStatus();
}

} // namespace meshwork::runtime::cuda
