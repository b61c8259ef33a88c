// Attention by kernels of the runtime for compute capability 9.0
// (kernels/WgmmaAttention.h): tensor cores fed by hardware copies. Their bits
// repeat. They run what is bf16 and without dropout; the rest is left to the
// plan's kernels.
//
//   std::unique_ptr<WgmmaKernels> kernels = *WgmmaKernels::load(driver,
//   device); absl::Status status = WgmmaKernels::check(problem);
//   std::unique_ptr<Operation> run = *kernels->forward(problem, places,
//   stream);
#pragma once

#include "runtime/device/cuda/AttentionProblem.h"
#include "runtime/device/cuda/Operation.h"
#include "runtime/device/cuda/PtxModule.h"
#include "runtime/device/cuda/WgmmaCounters.h"
#include "runtime/device/cuda/kernels/WgmmaAttention.h"

namespace meshwork::runtime::cuda {

class WgmmaKernels {
public:
  /// For the context that is current. The error is unimplemented on another GPU
  /// than of compute capability 9.0. It is failedPrecondition with a driver
  /// that describes no tensors (older than CUDA 12.0), rejects the code, or
  /// gives it other registers than it was made for.
  static absl::StatusOr<std::unique_ptr<WgmmaKernels>>
  load(const Driver &driver, Device device);

  /// unimplemented tells why the plan's kernels must do it.
  static absl::Status check(const AttentionProblem &problem);

  /// Of a problem that `check` takes. What prepares it goes into `stream`.
  absl::StatusOr<std::unique_ptr<Operation>>
  forward(const AttentionProblem &problem, const AttentionPlaces &places,
          Stream stream) const;
  /// Takes 8 bytes of the workspace, at a multiple of 16, for each head and
  /// query, padded to 128; unimplemented where it has fewer.
  absl::StatusOr<std::unique_ptr<Operation>>
  gradient(const AttentionProblem &problem, const AttentionPlaces &places,
           DevicePtr workspace, uint64_t workspaceBytes, Stream stream) const;

private:
  /// Of heads of up to `headDim` elements.
  struct OfClass {
    int headDim, forwardBytes, keyGradBytes, queryGradBytes;
    Function forward, rowSums, keyGrad, queryGrad;
  };
  explicit WgmmaKernels(const Driver &driver)
      : driver(driver), counters(driver) {}
  template <int D> absl::Status findClass(OfClass &of);
  absl::Status checkRegisters(Function function, const std::string &name,
                              bool handsOver) const;
  const OfClass &of(const AttentionProblem &problem) const;
  absl::StatusOr<TensorMap> map(const AttentionTensor &tensor, DevicePtr at,
                                const char *role, int64_t rows) const;
  absl::Status mapOperands(const AttentionProblem &problem,
                           const AttentionPlaces &places, TensorMap &q,
                           TensorMap &k, TensorMap &v) const;
  absl::StatusOr<KeyGradTask> keyGrad(const AttentionProblem &problem,
                                      const AttentionPlaces &places,
                                      Stream stream) const;
  absl::StatusOr<WgmmaWork> work(const AttentionProblem &problem, int64_t rows,
                                 int64_t heads, Stream stream) const;
  int64_t gridOf(const WgmmaWork &work) const;

  const Driver &driver;
  int multiprocessors = 1;
  std::unique_ptr<PtxModule> code;
  mutable WgmmaCounters counters;
  OfClass narrow{}, wide{};
};

} // namespace meshwork::runtime::cuda
