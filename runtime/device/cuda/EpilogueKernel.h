// The epilogue of a product as a kernel behind the product without it
// (kernels/Epilogues.cu): for products whose epilogue the library has not, or
// has slower.
//
//   std::shared_ptr<EpilogueKernels> kernels = *EpilogueKernels::load(driver);
//   EpilogueKernel rest = *EpilogueKernel::create(kernels, request);
//   status = product->run(stream, adds);  // of productAlone(request)
//   status = rest.run(stream);
//
// Takes f32 and bf16, any strides, and adds up in f32 in one order: the same
// bits each time. A GELU is of a sum that has been rounded to dst's type, once
// more than by the library.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/device/cuda/BlasLtProblem.h"
#include "runtime/device/cuda/PtxModule.h"
#include "runtime/device/cuda/kernels/Epilogues.h"
#include <memory>
#include <variant>

namespace meshwork::runtime::cuda {

/// The code, loaded for the context that is current then.
class EpilogueKernels {
public:
  static absl::StatusOr<std::shared_ptr<EpilogueKernels>>
  load(const Driver &driver);
  explicit EpilogueKernels(const Driver &driver) : driver(driver) {}

  const Driver &driver;
  Function finishProduct = nullptr, addUp = nullptr;

private:
  std::unique_ptr<PtxModule> code;
};

/// The request without bias and epilogue.
MatmulRequest productAlone(MatmulRequest request);

class EpilogueKernel {
public:
  /// Of a request with a bias or an epilogue. unimplemented for what the kernel
  /// has no code for.
  static absl::StatusOr<EpilogueKernel>
  create(std::shared_ptr<EpilogueKernels> kernels,
         const MatmulRequest &request);
  /// At the end of `stream`; may be captured into a graph.
  absl::Status run(Stream stream) const;

private:
  using Task = std::variant<FinishTask, AddUpTask>;
  EpilogueKernel(std::shared_ptr<EpilogueKernels> kernels, const Task &task)
      : kernels(std::move(kernels)), task(task) {}
  absl::Status launch(const char *name, Function function, int64_t blocks,
                      int threads, const void *task, Stream stream) const;

  std::shared_ptr<EpilogueKernels> kernels;
  Task task;
};

} // namespace meshwork::runtime::cuda
