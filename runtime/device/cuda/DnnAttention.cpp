#include "runtime/device/cuda/DnnAttention.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/AttentionGraph.h"
#include "runtime/device/cuda/Dnn.h"

namespace meshwork::runtime::cuda {
namespace {

/// Tensors that lie in the workspace, behind the plan's own.
using Sums = std::vector<std::pair<size_t, uint64_t>>;

class DnnAttention : public Operation {
public:
  DnnAttention(Dnn &dnn, const DnnPlan &plan, std::vector<DevicePtr> addresses,
               Sums sums)
      : dnn(dnn), plan(plan), addresses(std::move(addresses)),
        sums(std::move(sums)) {}

  absl::Status enqueue(Stream stream, bool) override {
    for (auto [tensor, offset] : sums)
      addresses[tensor] = dnn.workspace() + offset;
    return dnn.run(plan, addresses, dnn.workspace(), stream);
  }

private:
  Dnn &dnn;
  const DnnPlan &plan;
  std::vector<DevicePtr> addresses;
  Sums sums;
};

std::vector<DevicePtr> addressesOf(const AttentionGraph &made, bool isGrad,
                                   const AttentionPlaces &places) {
  std::vector<DevicePtr> addresses(made.graph.tensors.size());
  addresses[made.q] = places.q;
  addresses[made.k] = places.k;
  addresses[made.v] = places.v;
  addresses[made.out] = places.out;
  addresses[made.stats] = places.lse;
  if (places.documents)
    addresses[made.documents] = places.documents;
  if (!isGrad)
    return addresses;
  addresses[made.dout] = places.dout;
  addresses[made.dq] = places.dq;
  addresses[made.dk] = places.dk;
  addresses[made.dv] = places.dv;
  return addresses;
}

/// Where sums lie in the workspace, whose end is `end` then.
Sums layOut(const AttentionGraph &made, bool isGrad, const DnnPlan &plan,
            uint64_t &end) {
  constexpr uint64_t unit = 256;
  auto padded = [](uint64_t bytes) { return (bytes + unit - 1) / unit * unit; };
  end = padded(static_cast<uint64_t>(plan.workspaceBytes()));
  Sums sums;
  if (!isGrad)
    return sums;
  for (size_t tensor : {made.rowSums, made.dqSums}) {
    sums.emplace_back(tensor, end);
    const Dims4 &dims = made.graph.tensors[tensor].dims;
    end += padded(static_cast<uint64_t>(dims[0] * dims[1] * dims[2] * dims[3]) *
                  sizeof(float));
  }
  return sums;
}
} // namespace

absl::StatusOr<std::unique_ptr<Operation>>
makeDnnAttention(Dnn &dnn, const AttentionProblem &problem, bool isGrad,
                 const AttentionPlaces &places, Stream stream) {
  AttentionGraph made =
      isGrad ? attentionGradGraph(problem) : attentionGraph(problem);
  const DnnPlan *plan = nullptr;
  MESHWORK_ASSIGN_OR_RETURN(plan, dnn.plan(made.graph));
  uint64_t end = 0;
  Sums sums = layOut(made, isGrad, *plan, end);
  MESHWORK_RETURN_IF_ERROR(dnn.reserve(end));
  auto operation = std::make_unique<DnnAttention>(
      dnn, *plan, addressesOf(made, isGrad, places), std::move(sums));
  MESHWORK_RETURN_IF_ERROR(operation->enqueue(stream, false));
  return operation;
}

} // namespace meshwork::runtime::cuda
