// The speed of a large product, as training runs it.
#include "runtime/StatusMacros.h"
#include "runtime/device/cuda/CudaExecutor.h"
#include <algorithm>

namespace meshwork::runtime::cuda {
namespace {
constexpr int64_t smallest = 512, largest = 8192;
/// Long enough for clocks and launches not to matter.
constexpr float enoughMs = 1;
constexpr int runs = 10;

class Peak {
public:
  Peak(const Gpu &gpu, const BlasLt &blas, Queue &queue, plan::DType type)
      : gpu(gpu), blas(blas), queue(queue), type(type) {}

  /// Of `size` cubed: milliseconds of the fastest run.
  absl::StatusOr<float> measure(int64_t size) {
    uint64_t bytes = static_cast<uint64_t>(size * size) * 4;
    DeviceMemory memory;
    MESHWORK_ASSIGN_OR_RETURN(memory, DeviceMemory::create(gpu, 3 * bytes));
    const Driver &driver = gpu.driver();
    MESHWORK_RETURN_IF_ERROR(driver.check(
        driver.fillBytes(memory.address(), 0, 3 * bytes, queue.stream()),
        "clearing memory"));
    MatmulRequest request;
    DevicePtr at = memory.address();
    for (DeviceView *view : {&request.lhs, &request.rhs, &request.dst}) {
      *view = {at, type, {1, size, size}, {size * size, size, 1}};
      at += bytes;
    }
    request.name = "peak measurement";
    std::unique_ptr<BlasLtMatmul> product;
    MESHWORK_ASSIGN_OR_RETURN(product, blas.prepare(request));
    MESHWORK_RETURN_IF_ERROR(product->tune(queue.stream()));
    return fastest(*product);
  }

private:
  absl::StatusOr<float> fastest(BlasLtMatmul &product) {
    EventHandle begin, end;
    MESHWORK_ASSIGN_OR_RETURN(begin, EventHandle::create(gpu, true));
    MESHWORK_ASSIGN_OR_RETURN(end, EventHandle::create(gpu, true));
    float best = 0;
    for (int i = 0; i < runs; ++i) {
      MESHWORK_RETURN_IF_ERROR(queue.record(begin));
      MESHWORK_RETURN_IF_ERROR(product.run(queue.stream(), false));
      MESHWORK_RETURN_IF_ERROR(queue.record(end));
      MESHWORK_RETURN_IF_ERROR(queue.finish());
      float ms = 0;
      MESHWORK_RETURN_IF_ERROR(gpu.driver().check(
          gpu.driver().eventElapsedMs(&ms, begin.get(), end.get()),
          "reading the time of a product"));
      best = i == 0 ? ms : std::min(best, ms);
    }
    return best;
  }

  const Gpu &gpu;
  const BlasLt &blas;
  Queue &queue;
  plan::DType type;
};
} // namespace

absl::StatusOr<double> CudaExecutor::measureMatmulTflops(plan::DType type) {
  std::unique_ptr<BlasLt> library;
  MESHWORK_ASSIGN_OR_RETURN(
      library, BlasLt::create(cuda.gpu.driver(), cuda.gpu.device()));
  Peak peak(cuda.gpu, *library, *main, type);
  for (int64_t size = smallest;; size *= 2) {
    float ms = 0;
    MESHWORK_ASSIGN_OR_RETURN(ms, peak.measure(size));
    if (ms >= enoughMs || size == largest)
      return 2.0 * static_cast<double>(size) * static_cast<double>(size) *
             static_cast<double>(size) / std::max(ms, 1e-3f) / 1e9;
  }
}

} // namespace meshwork::runtime::cuda
