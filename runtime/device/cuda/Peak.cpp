// The speed of a large product, as training runs it.
#include "runtime/device/cuda/Peak.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/CudaExecutor.h"
#include "runtime/device/cuda/SquareProduct.h"
#include "runtime/device/cuda/TimeRow.h"
#include <algorithm>

namespace meshwork::runtime::cuda {
namespace {
constexpr int64_t smallest = 512, largest = 8192;
/// Long enough for clocks and launches not to matter.
constexpr double enoughSeconds = 1e-3;
constexpr int runs = 10;

absl::StatusOr<double> fastest(const Gpu &gpu, Queue &queue,
                               SquareProduct &product) {
  double best = 0;
  for (int i = 0; i < runs; ++i) {
    double seconds = 0;
    MESHWORK_ASSIGN_OR_RETURN(
        seconds, secondsInRow(gpu, queue, 1, [&] { return product.put(); }));
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}
} // namespace

absl::StatusOr<double> peakTflops(const Gpu &gpu, Queue &queue,
                                  plan::DType type) {
  std::unique_ptr<BlasLt> library;
  MESHWORK_ASSIGN_OR_RETURN(library, BlasLt::create(gpu.driver()));
  for (int64_t size = smallest;; size *= 2) {
    std::unique_ptr<SquareProduct> product;
    MESHWORK_ASSIGN_OR_RETURN(
        product, SquareProduct::create(gpu, *library, queue, type, size,
                                       /*workspaceBytes=*/0));
    double seconds = 0;
    MESHWORK_ASSIGN_OR_RETURN(seconds, fastest(gpu, queue, *product));
    if (seconds >= enoughSeconds || size == largest)
      return flopsOfSquare(size) / seconds / 1e12;
  }
}

absl::StatusOr<double> CudaExecutor::measureMatmulTflops(plan::DType type) {
  return peakTflops(cuda.gpu, *main, type);
}

} // namespace meshwork::runtime::cuda
