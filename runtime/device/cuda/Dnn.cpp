#include "runtime/device/cuda/Dnn.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "meshwork/Plan/Frame.h"

namespace meshwork::runtime::cuda {

absl::StatusOr<std::unique_ptr<Dnn>> Dnn::create(const Gpu &gpu) {
  const DnnLibrary *library = nullptr;
  MESHWORK_ASSIGN_OR_RETURN(library, DnnLibrary::open());
  std::unique_ptr<Dnn> made(new Dnn(gpu, *library));
  MESHWORK_RETURN_IF_ERROR(library->check(library->create(&made->handle),
                                          "starting cuDNN (cudnnCreate)"));
  return made;
}

Dnn::~Dnn() {
  known.clear();
  if (handle)
    (void)library.destroy(handle);
}

absl::StatusOr<const DnnPlan *> Dnn::plan(const DnnGraph &graph) {
  Known *found = nullptr;
  for (const auto &one : known)
    if (one->graph == graph)
      found = one.get();
  if (!found) {
    known.push_back(std::make_unique<Known>(
        Known{graph, DnnPlan::create(library, {handle, nullptr}, graph)}));
    found = known.back().get();
  }
  MESHWORK_RETURN_IF_ERROR(found->plan.status());
  return found->plan->get();
}

absl::Status Dnn::reserve(uint64_t needed) {
  if (needed <= bytes)
    return absl::OkStatus();
  release();
  MESHWORK_ASSIGN_OR_RETURN(memory, DeviceMemory::create(gpu, needed));
  bytes = needed;
  return absl::OkStatus();
}

void Dnn::release() {
  memory = DeviceMemory();
  bytes = 0;
}

absl::Status Dnn::run(const DnnPlan &plan,
                      absl::Span<const DevicePtr> addresses,
                      DevicePtr workspace, Stream stream) const {
  MESHWORK_RETURN_IF_ERROR(library.check(library.setStream(handle, stream),
                                         "giving cuDNN a stream"));
  return plan.run(handle, addresses, workspace);
}

} // namespace meshwork::runtime::cuda
