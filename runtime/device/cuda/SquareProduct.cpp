#include "runtime/device/cuda/SquareProduct.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/TimingNumbers.h"
#include <cstring>

namespace meshwork::runtime::cuda {
namespace {
using plan::DType;
constexpr uint64_t scaleBytes = 256; // one f32, and what follows is aligned

/// `memory` holds a scale of operands of 8 bits and three matrices of f32.
MatmulRequest requestOf(DType type, int64_t size, DevicePtr memory) {
  bool isNarrow = plan::isFloat8(type);
  MatmulRequest request;
  DevicePtr at = memory + scaleBytes;
  for (DeviceView *view : {&request.lhs, &request.rhs, &request.dst}) {
    *view = {at, type, {1, size, size}, {size * size, size, 1}};
    at += static_cast<uint64_t>(size * size) * sizeof(float);
  }
  if (isNarrow) { // both dense along the sum
    std::swap(request.rhs.strides[1], request.rhs.strides[2]);
    request.dst.dtype = DType::bf16;
    request.lhsScale = request.rhsScale = memory;
  }
  request.name = "a product to be timed";
  return request;
}
} // namespace

absl::StatusOr<std::unique_ptr<SquareProduct>>
SquareProduct::create(const Gpu &gpu, const BlasLt &blas, Queue &queue,
                      DType type, int64_t size, uint64_t workspaceBytes) {
  std::unique_ptr<SquareProduct> made(new SquareProduct(queue));
  uint64_t bytes =
      scaleBytes + 3 * static_cast<uint64_t>(size * size) * sizeof(float);
  MESHWORK_ASSIGN_OR_RETURN(made->memory,
                            DeviceMemory::create(gpu, bytes + workspaceBytes));
  MatmulRequest request = requestOf(type, size, made->memory.address());
  request.workspaceBytes = workspaceBytes;
  if (workspaceBytes > 0)
    request.workspace = made->memory.address() + bytes;
  MESHWORK_ASSIGN_OR_RETURN(made->product, blas.prepare(request));
  MESHWORK_RETURN_IF_ERROR(made->fill(gpu, bytes, plan::isFloat8(type)));
  MESHWORK_RETURN_IF_ERROR(made->product->tune(queue.stream()));
  MESHWORK_RETURN_IF_ERROR(made->product->load(queue.stream(), false));
  return made;
}

absl::Status SquareProduct::fill(const Gpu &gpu, uint64_t bytes,
                                 bool hasScale) {
  std::unique_ptr<Staging> staging;
  MESHWORK_ASSIGN_OR_RETURN(staging, Staging::create(gpu, queue));
  MESHWORK_RETURN_IF_ERROR(
      fillForTiming(gpu.driver(), queue, *staging, memory.address(), bytes));
  float scale = 1;
  std::byte asBytes[sizeof(scale)];
  std::memcpy(asBytes, &scale, sizeof(scale));
  if (hasScale)
    MESHWORK_RETURN_IF_ERROR(staging->write(memory.address(), asBytes));
  return queue.finish(); // before the staging goes
}

double flopsOfSquare(int64_t size) {
  auto number = static_cast<double>(size);
  return 2 * number * number * number;
}

} // namespace meshwork::runtime::cuda
