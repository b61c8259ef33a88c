#include "runtime/device/cuda/DnnPlan.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include <algorithm>
#include <iterator>

namespace meshwork::runtime::cuda {
namespace {
namespace at = dnn::attribute;
namespace kind = dnn::descriptor;
namespace type = dnn::type;

/// Sets attributes of one new descriptor; the first error stays.
class Maker {
public:
  Maker(const DnnLibrary &library, int kind) : library(library) {
    note(library.createDescriptor(kind, &raw), "creating a descriptor");
  }

  template <typename Element>
  Maker &set(int attribute, int type, absl::Span<const Element> elements) {
    if (status.ok())
      note(library.setAttribute(raw, attribute, type,
                                static_cast<int64_t>(elements.size()),
                                elements.data()),
           absl::StrCat("setting attribute ", attribute));
    return *this;
  }
  template <typename Element>
  Maker &set(int attribute, int type, const Element &element) {
    return set(attribute, type, absl::MakeConstSpan(&element, 1));
  }
  Maker &set(int attribute, const DnnDescriptor &descriptor) {
    return set(attribute, type::descriptor, descriptor.get());
  }

  absl::StatusOr<DnnDescriptor> finish(const char *what) {
    if (status.ok())
      note(library.finalize(raw), what);
    DnnDescriptor made(library, raw);
    if (!status.ok())
      return status;
    return made;
  }

private:
  void note(dnn::Status result, absl::string_view what) {
    status = library.check(result, what);
  }

  const DnnLibrary &library;
  dnn::Descriptor raw = nullptr;
  absl::Status status;
};

/// A graph as descriptors.
class Lowering {
public:
  Lowering(const DnnLibrary &library, const DnnGraph &graph)
      : library(library), graph(graph) {}

  absl::StatusOr<DnnDescriptor> run(dnn::Handle handle) {
    for (size_t i = 0; i < graph.tensors.size(); ++i)
      MESHWORK_RETURN_IF_ERROR(keep(tensor(i), tensors));
    for (const DnnOperation &operation : graph.operations)
      MESHWORK_RETURN_IF_ERROR(keep(lower(operation), operations));
    std::vector<dnn::Descriptor> all;
    for (const DnnDescriptor &one : operations)
      all.push_back(one.get());
    Maker maker(library, kind::graph);
    if (handle)
      maker.set(at::graphHandle, type::handle, handle);
    return maker
        .set(at::graphOperations, type::descriptor, absl::MakeConstSpan(all))
        .finish("making a graph");
  }

  /// They must live as long as the graph's plan.
  std::vector<DnnDescriptor> takeParts() {
    std::vector<DnnDescriptor> all = std::move(tensors);
    std::move(modes.begin(), modes.end(), std::back_inserter(all));
    std::move(operations.begin(), operations.end(), std::back_inserter(all));
    return all;
  }

private:
  static absl::Status keep(absl::StatusOr<DnnDescriptor> made,
                           std::vector<DnnDescriptor> &in) {
    MESHWORK_RETURN_IF_ERROR(made.status());
    in.push_back(*std::move(made));
    return absl::OkStatus();
  }

  absl::StatusOr<DnnDescriptor> tensor(size_t number) {
    const DnnTensor &of = graph.tensors[number];
    constexpr int64_t alignment = 16;
    return Maker(library, kind::tensor)
        .set(at::tensorUid, type::int64, static_cast<int64_t>(number))
        .set(at::tensorType, type::dataType, of.type)
        .set(at::tensorDimensions, type::int64, absl::MakeConstSpan(of.dims))
        .set(at::tensorStrides, type::int64, absl::MakeConstSpan(of.strides))
        .set(at::tensorAlignment, type::int64, alignment)
        .set(at::tensorIsVirtual, type::boolean,
             of.lives == DnnTensor::Lives::between)
        .set(at::tensorIsByValue, type::boolean,
             of.lives == DnnTensor::Lives::asValue)
        .finish("describing a tensor");
  }

  absl::StatusOr<DnnDescriptor> lower(const DnnOperation &of) {
    switch (of.kind) {
    case DnnOperation::Kind::matmul:
      return matmul(of);
    case DnnOperation::Kind::pointwise:
      return pointwise(of);
    case DnnOperation::Kind::reduction:
      return reduction(of);
    case DnnOperation::Kind::reshape:
      return Maker(library, kind::reshapeOperation)
          .set(at::reshapeX, tensors[of.x])
          .set(at::reshapeY, tensors[of.y])
          .finish("describing a reshape");
    }
    return absl::InternalError("unknown operation of a graph");
  }

  absl::StatusOr<DnnDescriptor> matmul(const DnnOperation &of) {
    MESHWORK_RETURN_IF_ERROR(
        keep(Maker(library, kind::matmul)
                 .set(at::matmulPrecision, type::dataType, of.precision)
                 .finish("describing a product"),
             modes));
    return Maker(library, kind::matmulOperation)
        .set(at::matmulDescriptor, modes.back())
        .set(at::matmulA, tensors[of.x])
        .set(at::matmulB, tensors[*of.b])
        .set(at::matmulC, tensors[of.y])
        .finish("describing a product");
  }

  absl::StatusOr<DnnDescriptor> reduction(const DnnOperation &of) {
    MESHWORK_RETURN_IF_ERROR(
        keep(Maker(library, kind::reduction)
                 .set(at::reductionOperator, type::reductionOperator, of.mode)
                 .set(at::reductionPrecision, type::dataType, of.precision)
                 .finish("describing a reduction"),
             modes));
    return Maker(library, kind::reductionOperation)
        .set(at::reductionDescriptor, modes.back())
        .set(at::reductionX, tensors[of.x])
        .set(at::reductionY, tensors[of.y])
        .finish("describing a reduction");
  }

  absl::StatusOr<DnnDescriptor> pointwise(const DnnOperation &of) {
    Maker mode(library, kind::pointwise);
    mode.set(at::pointwiseMode, type::pointwiseMode, of.mode)
        .set(at::pointwisePrecision, type::dataType, of.precision);
    if (of.axis)
      mode.set(at::pointwiseAxis, type::int64, *of.axis);
    MESHWORK_RETURN_IF_ERROR(
        keep(mode.finish("describing a pointwise operation"), modes));
    Maker operation(library, kind::pointwiseOperation);
    operation.set(at::pointwiseDescriptor, modes.back())
        .set(at::pointwiseX, tensors[of.x]);
    if (of.b)
      operation.set(at::pointwiseB, tensors[*of.b]);
    if (of.t)
      operation.set(at::pointwiseT, tensors[*of.t]);
    return operation.set(at::pointwiseY, tensors[of.y])
        .finish("describing a pointwise operation");
  }

  const DnnLibrary &library;
  const DnnGraph &graph;
  std::vector<DnnDescriptor> tensors, modes, operations;
};

/// What the heuristics propose, the best first.
absl::StatusOr<std::vector<DnnDescriptor>>
configsFor(const DnnLibrary &library, const DnnTarget &target,
           const DnnDescriptor &graph) {
  Maker maker(library, kind::heuristics);
  maker.set(at::heuristicsGraph, graph)
      .set(at::heuristicsMode, type::heuristicsMode, dnn::heuristics::modeA);
  if (target.device)
    maker.set(at::heuristicsDevice, type::descriptor, target.device);
  absl::StatusOr<DnnDescriptor> heuristics =
      maker.finish("asking the heuristics for engines");
  MESHWORK_RETURN_IF_ERROR(heuristics.status());
  constexpr int64_t most = 16;
  std::vector<DnnDescriptor> configs;
  std::vector<dnn::Descriptor> raw(most);
  for (dnn::Descriptor &one : raw) {
    MESHWORK_RETURN_IF_ERROR(
        library.check(library.createDescriptor(kind::engineConfig, &one),
                      "creating a descriptor"));
    configs.emplace_back(library, one);
  }
  int64_t found = 0;
  MESHWORK_RETURN_IF_ERROR(library.check(
      library.getAttribute(heuristics->get(), at::heuristicsResults,
                           type::descriptor, most, &found, raw.data()),
      "reading what the heuristics found"));
  configs.erase(configs.begin() + std::min(found, most), configs.end());
  return configs;
}

absl::StatusOr<DnnDescriptor> planOf(const DnnLibrary &library,
                                     const DnnTarget &target,
                                     const DnnDescriptor &config) {
  Maker maker(library, kind::plan);
  if (target.handle)
    maker.set(at::planHandle, type::handle, target.handle);
  if (target.device)
    maker.set(at::planDevice, type::descriptor, target.device);
  return maker.set(at::planConfig, config).finish("planning a graph");
}
} // namespace

absl::StatusOr<std::unique_ptr<DnnPlan>>
DnnPlan::create(const DnnLibrary &library, const DnnTarget &target,
                const DnnGraph &graph) {
  Lowering lowering(library, graph);
  absl::StatusOr<DnnDescriptor> lowered = lowering.run(target.handle);
  MESHWORK_RETURN_IF_ERROR(lowered.status());
  absl::StatusOr<std::vector<DnnDescriptor>> configs =
      configsFor(library, target, *lowered);
  MESHWORK_RETURN_IF_ERROR(configs.status());
  absl::Status last = absl::UnimplementedError("no engine takes the graph");
  for (DnnDescriptor &config : *configs) {
    absl::StatusOr<DnnDescriptor> plan = planOf(library, target, config);
    last = plan.status();
    if (!plan.ok())
      continue;
    std::unique_ptr<DnnPlan> made(new DnnPlan(library, graph));
    int64_t count = 0;
    MESHWORK_RETURN_IF_ERROR(library.check(
        library.getAttribute(plan->get(), at::planWorkspaceSize, type::int64, 1,
                             &count, &made->workspace),
        "reading the size of a workspace"));
    made->parts = lowering.takeParts();
    made->parts.push_back(*std::move(lowered));
    made->parts.push_back(std::move(config));
    made->parts.push_back(*std::move(plan));
    std::reverse(made->parts.begin(), made->parts.end()); // users go first
    return made;
  }
  return last;
}

absl::Status DnnPlan::run(dnn::Handle handle,
                          absl::Span<const DevicePtr> addresses,
                          DevicePtr workspace) const {
  std::vector<int64_t> uids;
  std::vector<const void *> pointers;
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const DnnTensor &tensor = graph.tensors[i];
    if (tensor.lives == DnnTensor::Lives::between)
      continue;
    uids.push_back(static_cast<int64_t>(i));
    pointers.push_back(tensor.lives == DnnTensor::Lives::asValue
                           ? static_cast<const void *>(&tensor.bits)
                           : reinterpret_cast<const void *>(addresses[i]));
  }
  absl::StatusOr<DnnDescriptor> pack =
      Maker(library, kind::variantPack)
          .set(at::packUids, type::int64, absl::MakeConstSpan(uids))
          .set(at::packPointers, type::pointer, absl::MakeConstSpan(pointers))
          .set(at::packWorkspace, type::pointer,
               reinterpret_cast<void *>(workspace))
          .finish("naming a graph's memory");
  MESHWORK_RETURN_IF_ERROR(pack.status());
  return library.check(
      library.execute(handle, parts.front().get(), pack->get()),
      "starting a graph");
}

} // namespace meshwork::runtime::cuda
