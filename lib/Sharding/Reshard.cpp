#include "lib/Sharding/Reshard.h"

#include <algorithm>

#include "lib/Sharding/Search.h"
#include "lib/Sharding/Steps.h"

namespace meshwork::sharding {
namespace {

/// A request without what both sides share: axes at the major end of a dim
/// (`fixed`), and partial ones. What is left are few axes on a smaller tensor.
class Reduced {
public:
  Reduced(const Mesh &mesh, const std::vector<int64_t> &shape,
          const Sharding &from, const Sharding &to)
      : mesh(mesh), from(from), fixed(from), number(mesh.axes.size(), -1) {
    std::vector<char> differs(mesh.axes.size(), false);
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      size_t shared = sharedMajor(from.dims[dim], to.dims[dim]);
      for (const Sharding *side : {&from, &to})
        for (size_t i = shared; i < side->dims[dim].size(); ++i) {
          AxisId axis = side->dims[dim][i];
          differs[axis] = true;
          onlyBlocks &= axis.layout == DimLayout::block;
        }
      fixed.dims[dim].resize(shared);
    }
    for (AxisId axis : from.partial)
      if (std::find(to.partial.begin(), to.partial.end(), axis) ==
          to.partial.end())
        differs[axis] = true;
    fixed.partial = to.partial;
    for (AxisId axis = 0; axis < mesh.axes.size(); ++axis) {
      if (!differs[axis])
        continue;
      number[axis] = static_cast<int>(axes.size());
      axes.push_back(axis);
    }
  }

  bool canSearch() const {
    return onlyBlocks && axes.size() <= size_t{maxSearchAxes} &&
           fixed.dims.size() <= size_t{maxSearchDims};
  }

  Problem problem(const std::vector<int64_t> &shape, int64_t elementBytes,
                  const Sharding &to) const {
    Problem problem;
    problem.shape = localShape(mesh, shape, fixed);
    for (AxisId axis : axes)
      problem.sizes.push_back(mesh.axes[axis].size);
    problem.elementBytes = elementBytes;
    problem.from = stateOf(from);
    problem.to = stateOf(to);
    return problem;
  }

  std::vector<Step> stepsOf(const std::vector<Move> &moves) const {
    std::vector<Step> steps;
    Sharding before = from;
    for (const Move &move : moves) {
      Step step{move.kind,     {},     move.dim,
                move.toDim,    before, shardingOf(move.after),
                move.bytesSent};
      step.axes = axesOf(step);
      before = step.after;
      steps.push_back(std::move(step));
    }
    return steps;
  }

private:
  State stateOf(const Sharding &sharding) const {
    State state;
    for (size_t i = 0; i < axes.size(); ++i)
      state.place(static_cast<int>(i), State::replicated, 0);
    for (size_t dim = 0; dim < sharding.dims.size(); ++dim) {
      size_t major = fixed.dims[dim].size();
      for (size_t i = major; i < sharding.dims[dim].size(); ++i)
        state.place(number[sharding.dims[dim][i]], static_cast<int>(dim),
                    static_cast<int>(i - major));
    }
    for (AxisId axis : sharding.partial)
      if (number[axis] >= 0)
        state.place(number[axis], State::partial, 0);
    return state;
  }

  Sharding shardingOf(State state) const {
    Sharding sharding = fixed;
    sharding.reduction = from.reduction;
    for (size_t position = 0; position < axes.size(); ++position)
      for (size_t i = 0; i < axes.size(); ++i) {
        int bin = state.bin(static_cast<int>(i));
        if (bin < State::replicated &&
            state.position(static_cast<int>(i)) == static_cast<int>(position))
          sharding.dims[static_cast<size_t>(bin)].push_back(axes[i]);
      }
    for (size_t i = 0; i < axes.size(); ++i)
      if (state.bin(static_cast<int>(i)) == State::partial)
        sharding.partial.push_back(axes[i]);
    std::sort(sharding.partial.begin(), sharding.partial.end());
    return sharding;
  }

  std::vector<AxisId> axesOf(const Step &step) const {
    auto behind = [](const std::vector<AxisId> &axes, size_t count) {
      return std::vector<AxisId>(axes.begin() + static_cast<long>(count),
                                 axes.end());
    };
    auto dim = static_cast<size_t>(step.dim);
    std::vector<AxisId> reduced;
    switch (step.kind) {
    case Step::Kind::allReduce:
      std::set_difference(step.before.partial.begin(),
                          step.before.partial.end(), step.after.partial.begin(),
                          step.after.partial.end(),
                          std::back_inserter(reduced));
      return reduced;
    case Step::Kind::permute:
      return permutedAxes(mesh, step.before, step.after);
    case Step::Kind::reduceScatter:
    case Step::Kind::slice:
      return behind(step.after.dims[dim], step.before.dims[dim].size());
    case Step::Kind::allGather:
    case Step::Kind::allToAll:
      return behind(step.before.dims[dim], step.after.dims[dim].size());
    }
    return {};
  }

  const Mesh &mesh;
  const Sharding &from;
  Sharding fixed;
  std::vector<AxisId> axes;
  std::vector<int> number; // of each axis of the mesh, or -1
  bool onlyBlocks = true;  // are changed
};

} // namespace

std::optional<Plan> planReshard(const Mesh &mesh,
                                const std::vector<int64_t> &shape,
                                int64_t elementBytes, const Sharding &from,
                                const Sharding &to, std::string &error) {
  error = checkRequest(mesh, shape, elementBytes, from, to);
  if (!error.empty())
    return std::nullopt;
  Sharding source = normalized(mesh, from), target = normalized(mesh, to);
  if (source == target)
    return Plan{};
  Reduced reduced(mesh, shape, source, target);
  if (reduced.canSearch())
    if (auto moves = search(reduced.problem(shape, elementBytes, target)))
      return Plan{reduced.stepsOf(*moves), true};
  return Plan{planThroughReplicated(mesh, shape, elementBytes, source, target),
              false};
}

bool Planner::Request::operator==(const Request &other) const {
  return shape == other.shape && elementBytes == other.elementBytes &&
         from == other.from && to == other.to;
}

size_t Planner::RequestHash::operator()(const Request &request) const {
  size_t result = hash(request.from) * 31 + hash(request.to);
  for (int64_t size : request.shape)
    result = result * 31 + static_cast<size_t>(size);
  return result * 31 + static_cast<size_t>(request.elementBytes);
}

const Plan *Planner::plan(const std::vector<int64_t> &shape,
                          int64_t elementBytes, const Sharding &from,
                          const Sharding &to, std::string &error) {
  Request request{shape, elementBytes, from, to};
  auto found = plans.find(request);
  if (found == plans.end()) {
    std::optional<Plan> plan =
        planReshard(mesh, shape, elementBytes, from, to, error);
    if (!plan)
      return nullptr;
    found = plans.emplace(std::move(request), *std::move(plan)).first;
  }
  error.clear();
  return &found->second;
}

} // namespace meshwork::sharding
