// A graph of cuDNN, planned: an engine that runs all of it.
//
//   std::unique_ptr<DnnPlan> plan = *DnnPlan::create(library, {handle}, graph);
//   plan->workspaceBytes();
//   status = plan->run(handle, pointers, workspace);
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/device/cuda/DnnGraph.h"
#include "runtime/device/cuda/DnnLibrary.h"
#include <memory>
#include <string>
#include <utility>

namespace meshwork::runtime::cuda {

/// A descriptor of the library, destroyed with this.
class DnnDescriptor {
public:
  DnnDescriptor(const DnnLibrary &library, dnn::Descriptor raw)
      : library(&library), raw(raw) {}
  DnnDescriptor(DnnDescriptor &&other)
      : library(other.library), raw(std::exchange(other.raw, nullptr)) {}
  DnnDescriptor &operator=(DnnDescriptor &&other) {
    std::swap(library, other.library);
    std::swap(raw, other.raw);
    return *this;
  }
  ~DnnDescriptor() {
    if (raw)
      (void)library->destroyDescriptor(raw);
  }
  dnn::Descriptor get() const { return raw; }

private:
  const DnnLibrary *library;
  dnn::Descriptor raw;
};

/// Whom a plan is for: the device of a handle, or one that is described
/// (`descriptor::deviceProperties`) and need not be there.
struct DnnTarget {
  dnn::Handle handle = nullptr;
  dnn::Descriptor device = nullptr;
};

class DnnPlan {
public:
  /// The first engine, in the order of the library's heuristics, that takes
  /// the graph. unimplemented when none does.
  static absl::StatusOr<std::unique_ptr<DnnPlan>>
  create(const DnnLibrary &library, const DnnTarget &target,
         const DnnGraph &graph);

  /// At a multiple of 256, beside the graph's tensors in memory.
  int64_t workspaceBytes() const { return workspace; }

  /// Puts the graph into the stream of the handle. `addresses` are those of
  /// the graph's tensors by number, 0 where a tensor is not in memory.
  absl::Status run(dnn::Handle handle, absl::Span<const DevicePtr> addresses,
                   DevicePtr workspace) const;

private:
  DnnPlan(const DnnLibrary &library, const DnnGraph &graph)
      : library(library), graph(graph) {}

  const DnnLibrary &library;
  DnnGraph graph;
  std::vector<DnnDescriptor> parts; // the first is the plan
  int64_t workspace = 0;
};

} // namespace meshwork::runtime::cuda
