// A plan's matrix product as cuBLASLt takes it. The library's matrices have
// dense columns, the plan's mostly dense rows; such a matrix is the transpose
// of one of the library's, in place. So where dst has dense rows the library is
// asked for dst^T = rhs^T * lhs^T, else for dst itself.
#pragma once

#include "absl/status/statusor.h"
#include "meshwork/Plan/Types.h"
#include "runtime/device/cuda/DriverApi.h"
#include <optional>
#include <string>
#include <vector>

namespace meshwork::runtime::cuda {

/// A view of the plan in the memory of the device; strides in elements.
struct DeviceView {
  DevicePtr address = 0;
  plan::DType dtype = plan::DType::f32;
  std::vector<int64_t> shape, strides;

  /// "bf16[1, 4, 8] with strides [32, 8, 1]", for messages.
  std::string describe() const;
};

/// plan::Matmul on a device. The workspace, at a multiple of 256, serves one
/// product at a time.
struct MatmulRequest {
  DeviceView lhs, rhs, dst;
  std::optional<DeviceView> bias;
  DevicePtr workspace = 0;
  uint64_t workspaceBytes = 0;
  std::string name;                     // of the instruction, for messages
  DevicePtr lhsScale = 0, rhsScale = 0; // of operands of 8 bits; one f32 each
  plan::Epilogue epilogue = plan::Epilogue::none;
  std::optional<DeviceView> aux = {}; // of the epilogue
  uint32_t multiprocessors = 0;       // to count on; 0: all of the GPU
};

/// One operand with dense columns, `ld` elements apart.
struct ColumnMatrix {
  DevicePtr address = 0;
  int64_t rows = 0, columns = 0, ld = 0, batchStride = 0;
  bool transposed = false; // enters the product as its transpose

  /// The largest power of two, up to 256, that the address is a multiple of.
  uint32_t alignment() const;
};

/// d = op(a) * op(b) (+ bias for each row of d) (+ d), and an epilogue.
struct BlasLtProblem {
  ColumnMatrix a, b, d;
  int aType = 0, bType = 0, outputType = 0; // blas::dataType
  DevicePtr aScale = 0, bScale = 0;         // 0: not of 8 bits
  int64_t batch = 1;
  uint32_t epilogue = 0; // blas::epilogue
  DevicePtr bias = 0;    // of the output's type, or where sums go; 0: none
  ColumnMatrix aux;      // of a GELU and the output's type; address 0: none
  DevicePtr workspace = 0;
  uint64_t workspaceBytes = 0;
  uint32_t multiprocessors = 0; // to count on; 0: all of the GPU

  /// Whether tensor cores may add up without going to f32 in between, which
  /// costs low bits: of a product of two e4m3, as the forward pass has them.
  /// The gradients' products have an e5m2 and keep the bits.
  bool accumulatesFast() const;
  /// For more than a bias.
  bool asksForEpilogue() const;
  /// Of the bias too; as in the library's header, without its prefix.
  const char *epilogueName() const;
  /// What kernels may assume of d, and of bias and aux: they go along with d.
  uint32_t outputAlignment() const;
  /// What the speed of an algorithm depends on: everything but addresses.
  std::string key() const;
};

/// Fails with invalidArgument for shapes that do not fit each other. Fails with
/// unimplemented for types and strides for which cuBLASLt has no kernel, and
/// says what was found and what is expected.
absl::StatusOr<BlasLtProblem> problemOf(const MatmulRequest &request);

} // namespace meshwork::runtime::cuda
