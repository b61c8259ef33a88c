#include "runtime/run/GpuLinks.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/Memory.h"
#include "runtime/device/cuda/NcclTransport.h"
#include "runtime/device/cuda/TimeRow.h"
#include <algorithm>

namespace meshwork::runtime {
namespace {
using cuda::DeviceCollective;
/// The first is all latency. Of the others the first that takes long enough for
/// its latency not to matter, or the last.
constexpr uint64_t sizes[] = {sizeof(float), 16 << 20, 64 << 20, 256 << 20};
constexpr double enoughSeconds = 2e-3;
/// As of MeasureMachine.cpp.
constexpr int smallRows = 10, smallLength = 20, largeRows = 4, largeLength = 3;

CollectiveRequest requestOf(uint32_t axis, uint64_t bytes,
                            cuda::DevicePtr memory) {
  Strided view;
  view.data = reinterpret_cast<std::byte *>(memory);
  view.dtype = plan::DType::f32;
  view.shape = {static_cast<int64_t>(bytes / sizeof(float))};
  view.strides = {1};
  return {plan::CollectiveKind::all_reduce,
          plan::Reduction::sum,
          {axis},
          {{view, view}},
          "the measurement"};
}

class Links {
public:
  explicit Links(const RankOnGpu &on)
      : on(on), mesh({on.nodes, on.ranksPerNode}) {}

  absl::Status prepare(const std::vector<uint32_t> &axes) {
    std::vector<CollectiveRequest> requests;
    for (uint32_t axis : axes)
      requests.push_back(requestOf(axis, std::end(sizes)[-1], 0));
    MESHWORK_ASSIGN_OR_RETURN(
        nccl,
        cuda::NcclTransport::create({on.gpu.driver(), on.host, mesh, on.rank,
                                     std::move(requests), on.timeoutSeconds}));
    MESHWORK_ASSIGN_OR_RETURN(queue,
                              cuda::Queue::create(on.gpu,
                                                  {on.rank, on.host, nccl.get(),
                                                   nullptr, on.timeoutSeconds},
                                                  false));
    return allocate(sizes[0]);
  }

  absl::StatusOr<MeasuredLink> measure(uint32_t axis, uint32_t ranks) {
    MeasuredLink link{ranks, 0, 0, 0};
    MESHWORK_ASSIGN_OR_RETURN(link.smallSeconds,
                              fastest(axis, sizes[0], smallRows, smallLength));
    MESHWORK_ASSIGN_OR_RETURN(link.bytes, largeEnough(axis));
    MESHWORK_ASSIGN_OR_RETURN(
        link.largeSeconds, fastest(axis, link.bytes, largeRows, largeLength));
    return link;
  }

private:
  absl::Status allocate(uint64_t bytes) {
    memory = {};
    MESHWORK_ASSIGN_OR_RETURN(memory,
                              cuda::DeviceMemory::create(on.gpu, bytes));
    MESHWORK_RETURN_IF_ERROR(on.gpu.driver().check(
        on.gpu.driver().fillBytes(memory.address(), 0, bytes, queue->stream()),
        "filling memory"));
    return queue->finish();
  }

  /// Seconds of one, in the fastest of some rows.
  absl::StatusOr<double> fastest(uint32_t axis, uint64_t bytes, int rows,
                                 int length) {
    std::unique_ptr<DeviceCollective> sum;
    MESHWORK_ASSIGN_OR_RETURN(
        sum, nccl->prepare(on.rank, requestOf(axis, bytes, memory.address())));
    CommTimes ignored;
    double best = 0;
    for (int i = 0; i < rows; ++i) {
      double seconds = 0;
      MESHWORK_ASSIGN_OR_RETURN(seconds,
                                cuda::secondsInRow(on.gpu, *queue, length, [&] {
                                  return sum->enqueue(queue->stream(), ignored);
                                }));
      best = i == 0 ? seconds : std::min(best, seconds);
    }
    return best;
  }

  /// The same on all ranks: what is enough for one is for all.
  absl::StatusOr<uint64_t> largeEnough(uint32_t axis) {
    for (size_t i = 1;; ++i) {
      double seconds = 0;
      MESHWORK_RETURN_IF_ERROR(allocate(sizes[i]));
      MESHWORK_ASSIGN_OR_RETURN(seconds, fastest(axis, sizes[i], 2, 1));
      uint32_t anyIs = 0;
      MESHWORK_ASSIGN_OR_RETURN(anyIs,
                                on.host.agree(on.rank, seconds >= enoughSeconds,
                                              "the size of an all_reduce"));
      if (anyIs || i + 1 == std::size(sizes))
        return sizes[i];
    }
  }

  const RankOnGpu &on;
  Mesh mesh;
  std::unique_ptr<cuda::NcclTransport> nccl;
  std::unique_ptr<cuda::Queue> queue;
  cuda::DeviceMemory memory;
};
} // namespace

absl::Status measureGpuLinks(const RankOnGpu &on,
                             std::optional<MeasuredLink> &withinNode,
                             std::optional<MeasuredLink> &betweenNodes) {
  std::vector<uint32_t> axes;
  const uint32_t ranks[] = {on.nodes, on.ranksPerNode};
  std::optional<MeasuredLink> *found[] = {&betweenNodes, &withinNode};
  for (uint32_t axis : {0u, 1u})
    if (ranks[axis] > 1)
      axes.push_back(axis);
  if (axes.empty())
    return absl::OkStatus();
  Links links(on);
  MESHWORK_RETURN_IF_ERROR(links.prepare(axes));
  for (uint32_t axis : axes)
    MESHWORK_ASSIGN_OR_RETURN(*found[axis], links.measure(axis, ranks[axis]));
  return absl::OkStatus();
}

} // namespace meshwork::runtime
