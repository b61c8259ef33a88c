// What the tests of NCCL ask a transport to do.
#pragma once

#include "runtime/comm/Transport.h"
#include "test/Runtime/cuda/TestDevice.h"

namespace meshwork::runtime::cuda::test {

/// One dense tensor, nowhere yet, over the mesh's first axis.
inline CollectiveRequest requestFor(plan::CollectiveKind kind,
                                    plan::DType dtype, std::vector<int64_t> src,
                                    std::vector<int64_t> dst, size_t dim = 0) {
  auto dense = [&](std::vector<int64_t> shape) {
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t i = shape.size(); i-- > 1;)
      strides[i - 1] = strides[i] * shape[i];
    return Strided{nullptr, dtype, std::move(shape), strides};
  };
  return {
      kind, plan::Reduction::sum, {0}, {{dense(src), dense(dst), dim}}, "x"};
}

/// An all_reduce of four f32 in their place.
inline CollectiveRequest sumOf(DevicePtr data) {
  CollectiveRequest request =
      requestFor(plan::CollectiveKind::all_reduce, plan::DType::f32, {4}, {4});
  request.parts[0].src.data = request.parts[0].dst.data =
      reinterpret_cast<std::byte *>(data);
  return request;
}

} // namespace meshwork::runtime::cuda::test
