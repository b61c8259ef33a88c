// A program of one instruction, its arena, and tensors as vectors of doubles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "meshwork/Plan/Types.h"

namespace meshwork::runtime::test {

using plan::DType;
using Values = std::vector<double>;
using Dims = std::vector<int64_t>;

int64_t countOf(const Dims &shape);
Dims rowMajor(const Dims &shape);
/// Reproducible numbers, uniform in [-1, 1), exact in `dtype`.
Values randomValues(int64_t count, DType dtype, uint32_t seed);
/// `value` as `dtype` holds it.
double roundTo(DType dtype, double value);
/// Largest absolute difference; infinity for different sizes or a NaN.
double maxDifference(const Values &a, const Values &b);

class TestProgram {
public:
  /// A new buffer of `elements` NaNs.
  uint32_t addBuffer(DType dtype, int64_t elements);
  /// A view of a buffer; `first` counts elements. Strides default to dense.
  uint32_t addView(uint32_t buffer, DType dtype, const Dims &shape,
                   const Dims &strides = {}, int64_t first = 0);
  /// A dense tensor in a buffer of its own.
  uint32_t add(DType dtype, const Dims &shape);
  uint32_t add(DType dtype, const Dims &shape, const Values &values);

  /// Row-major, whatever the strides.
  void write(uint32_t view, const Values &values);
  Values read(uint32_t view) const;
  /// All bytes, for comparison bit by bit.
  const std::vector<std::byte> &bytes() const { return arena; }
  void restore(const std::vector<std::byte> &bytes) { arena = bytes; }

  struct Options {
    int threads = 2;
    uint32_t microbatch = 0; // the first sets what others add to
  };
  template <typename OperationT>
  absl::Status run(const OperationT &operation, Options options) {
    plan::OperationUnion op;
    op.Set(OperationT(operation));
    return runInstruction(std::move(op), options);
  }
  template <typename OperationT> absl::Status run(const OperationT &operation) {
    return run(operation, Options{});
  }
  template <typename OperationT>
  absl::StatusOr<uint64_t> workspaceOf(const OperationT &operation) {
    plan::OperationUnion op;
    op.Set(OperationT(operation));
    return workspaceOfInstruction(std::move(op));
  }

  /// The plan as bytes, for a caller that runs it itself.
  template <typename OperationT>
  std::vector<uint8_t> serializeFor(const OperationT &operation) const {
    plan::OperationUnion op;
    op.Set(OperationT(operation));
    return serialize(std::move(op));
  }

  std::vector<plan::KernelT> kernels;
  std::vector<uint8_t> code;

private:
  absl::Status runInstruction(plan::OperationUnion op, Options options);
  absl::StatusOr<uint64_t> workspaceOfInstruction(plan::OperationUnion op);
  std::vector<uint8_t> serialize(plan::OperationUnion op) const;
  template <typename Visit> void forEach(uint32_t view, Visit visit) const;

  std::vector<std::byte> arena;
  std::vector<plan::BufferT> buffers;
  std::vector<plan::ViewT> views;
};

} // namespace meshwork::runtime::test
