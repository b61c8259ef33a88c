#include "lib/Plan/StatusMacros.h"
#include "meshwork/Plan/Gpu.h"
#include "runtime/device/cuda/MeasureParts.h"
#include "runtime/device/cuda/SquareProduct.h"
#include "runtime/device/cuda/TimeRow.h"
#include <algorithm>

namespace meshwork::runtime::cuda {
namespace {
constexpr int64_t smallest = 64, largest = 8192;
/// The largest that are timed decide; small ones alone would say nothing of
/// what training runs.
constexpr size_t leastSizes = 3, mostSizes = 4;
/// As of Peak.cpp.
constexpr double enoughSeconds = 1e-3;

absl::StatusOr<double> timeOf(const Gpu &gpu, const BlasLt &blas, Queue &queue,
                              plan::DType type, int64_t size) {
  std::unique_ptr<SquareProduct> product;
  MESHWORK_ASSIGN_OR_RETURN(product,
                            SquareProduct::create(gpu, blas, queue, type, size,
                                                  plan::matmulWorkspaceBytes));
  return meanSeconds(gpu, queue, [&] { return product->put(); });
}

absl::StatusOr<FittedRate> rateOf(const Gpu &gpu, const BlasLt &blas,
                                  Queue &queue, plan::DType type,
                                  double launchSeconds) {
  std::vector<TimedWork> all;
  for (int64_t size = smallest; size <= largest; size *= 2) {
    double seconds = 0;
    MESHWORK_ASSIGN_OR_RETURN(seconds, timeOf(gpu, blas, queue, type, size));
    all.push_back({flopsOfSquare(size),
                   std::max(seconds - launchSeconds, 0.1 * seconds)});
    if (seconds >= enoughSeconds && all.size() >= leastSizes)
      break;
  }
  return fitRate(
      absl::MakeConstSpan(all).last(std::min(all.size(), mostSizes)));
}
} // namespace

absl::Status measureProducts(const Gpu &gpu, Queue &queue, GpuWork &work) {
  std::unique_ptr<BlasLt> blas;
  MESHWORK_ASSIGN_OR_RETURN(blas, BlasLt::create(gpu.driver()));
  for (auto [type, rate] : {std::pair(plan::DType::f32, &work.f32),
                            {plan::DType::bf16, &work.bf16}})
    MESHWORK_ASSIGN_OR_RETURN(
        *rate, rateOf(gpu, *blas, queue, type, work.launchSeconds));
  int major = 0, minor = 0;
  MESHWORK_RETURN_IF_ERROR(readCapability(gpu, major, minor));
  if (!hasFloat8(major, minor))
    return absl::OkStatus();
  absl::StatusOr<FittedRate> narrow =
      rateOf(gpu, *blas, queue, plan::DType::e4m3, work.launchSeconds);
  if (absl::IsUnimplemented(narrow.status())) // by an older library
    return absl::OkStatus();
  MESHWORK_RETURN_IF_ERROR(narrow.status());
  work.fp8 = *narrow;
  return absl::OkStatus();
}

} // namespace meshwork::runtime::cuda
