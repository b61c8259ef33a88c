// cuDNN for one rank: plans of graphs, equal ones made once, and memory in
// which they take turns.
//
//   std::unique_ptr<Dnn> dnn = *Dnn::create(gpu);
//   const DnnPlan *plan = *dnn->plan(graph);
//   status = dnn->reserve(plan->workspaceBytes());
//   status = dnn->run(*plan, addresses, stream);
#pragma once

#include "runtime/device/cuda/DnnPlan.h"
#include "runtime/device/cuda/Memory.h"

namespace meshwork::runtime::cuda {

/// One thread at a time. The GPU's context is current.
class Dnn {
public:
  static absl::StatusOr<std::unique_ptr<Dnn>> create(const Gpu &gpu);
  Dnn(const Dnn &) = delete;
  ~Dnn();

  size_t version() const { return library.getVersion(); }

  /// Lives as long as this. Takes part of a second for a new graph.
  absl::StatusOr<const DnnPlan *> plan(const DnnGraph &graph);

  /// Makes the memory at least that large. What lay in it is lost, and where
  /// it lies changes: not while anything runs or is captured.
  absl::Status reserve(uint64_t bytes);
  /// Gives it back, as after a timing.
  void release();
  DevicePtr workspace() const { return memory.address(); }

  /// Into `stream`; DnnPlan::run has the rest.
  absl::Status run(const DnnPlan &plan, absl::Span<const DevicePtr> addresses,
                   DevicePtr workspace, Stream stream) const;

private:
  Dnn(const Gpu &gpu, const DnnLibrary &library) : gpu(gpu), library(library) {}

  struct Known {
    DnnGraph graph;
    absl::StatusOr<std::unique_ptr<DnnPlan>> plan;
  };
  const Gpu &gpu;
  const DnnLibrary &library;
  dnn::Handle handle = nullptr;
  std::vector<std::unique_ptr<Known>> known;
  DeviceMemory memory;
  uint64_t bytes = 0;
};

} // namespace meshwork::runtime::cuda
