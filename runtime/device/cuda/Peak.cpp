// The speed of a large product, as training runs it.
#include "runtime/device/cuda/Peak.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/CudaExecutor.h"
#include <algorithm>
#include <cstring>
#include <random>

namespace meshwork::runtime::cuda {
namespace {
constexpr int64_t smallest = 512, largest = 8192;
constexpr uint64_t blockBytes = 1 << 20;
/// Long enough for clocks and launches not to matter.
constexpr float enoughMs = 1;
constexpr int runs = 10;

/// Values between 0.5 and 1, of either sign: products of zeros take less power,
/// so that clocks are higher than they are for any training (12 % on an H200).
std::vector<std::byte> randomValues(plan::DType type, size_t bytes) {
  std::mt19937 random(0);
  std::vector<uint32_t> words(bytes / sizeof(uint32_t));
  bool isWide = type == plan::DType::f32;
  for (uint32_t &word : words) // sign and fraction; the exponent is that of 0.5
    word = isWide ? (random() & 0x807fffff) | 0x3f000000
                  : (random() & 0x807f807f) | 0x3f003f00;
  std::vector<std::byte> values(bytes);
  std::memcpy(values.data(), words.data(), bytes);
  return values;
}

class Peak {
public:
  Peak(const Gpu &gpu, const BlasLt &blas, Queue &queue, plan::DType type)
      : gpu(gpu), blas(blas), queue(queue), type(type) {}

  /// Of `size` cubed: milliseconds of the fastest run.
  absl::StatusOr<float> measure(int64_t size) {
    uint64_t bytes = static_cast<uint64_t>(size * size) * 4;
    DeviceMemory memory;
    MESHWORK_ASSIGN_OR_RETURN(memory, DeviceMemory::create(gpu, 3 * bytes));
    MESHWORK_RETURN_IF_ERROR(fill(memory.address(), 3 * bytes));
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
  /// A block from the host, then copies of what is there.
  absl::Status fill(DevicePtr to, uint64_t bytes) {
    uint64_t filled = std::min(bytes, blockBytes);
    std::unique_ptr<Staging> staging;
    MESHWORK_ASSIGN_OR_RETURN(staging, Staging::create(gpu, queue));
    MESHWORK_RETURN_IF_ERROR(staging->write(to, randomValues(type, filled)));
    for (uint64_t more = 0; filled < bytes; filled += more) {
      more = std::min(filled, bytes - filled);
      MESHWORK_RETURN_IF_ERROR(gpu.driver().check(
          gpu.driver().copyOnDevice(to + filled, to, more, queue.stream()),
          "filling memory"));
    }
    return queue.finish(); // before the staging goes
  }

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

absl::StatusOr<double> peakTflops(const Gpu &gpu, Queue &queue,
                                  plan::DType type) {
  std::unique_ptr<BlasLt> library;
  MESHWORK_ASSIGN_OR_RETURN(library, BlasLt::create(gpu.driver()));
  Peak peak(gpu, *library, queue, type);
  for (int64_t size = smallest;; size *= 2) {
    float ms = 0;
    MESHWORK_ASSIGN_OR_RETURN(ms, peak.measure(size));
    if (ms >= enoughMs || size == largest)
      return 2.0 * static_cast<double>(size) * static_cast<double>(size) *
             static_cast<double>(size) / std::max(ms, 1e-3f) / 1e9;
  }
}

absl::StatusOr<double> CudaExecutor::measureMatmulTflops(plan::DType type) {
  return peakTflops(cuda.gpu, *main, type);
}

} // namespace meshwork::runtime::cuda
