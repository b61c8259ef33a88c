// Who writes what of a checkpoint: over random meshes, shardings and programs,
// every element once, and everyone as much as the others that hold the same.
#include "lib/Plan/Boxes.h"
#include "TestPlan.h"
#include "lib/Plan/Programs.h"
#include "meshwork/Plan/Types.h"
#include <gtest/gtest.h>
#include <map>
#include <random>

namespace meshwork::plan::test {
namespace {

/// A plan that is no more than a mesh, programs and their parameters.
class Holder {
public:
  explicit Holder(const PlanT &plan) {
    builder.Finish(Plan::Pack(builder, &plan));
  }
  const Plan &plan() const {
    return *flatbuffers::GetRoot<Plan>(builder.GetBufferPointer());
  }

private:
  flatbuffers::FlatBufferBuilder builder;
};

struct Random {
  std::mt19937 engine;
  /// From `least` to `most`.
  uint32_t operator()(uint32_t least, uint32_t most) {
    return least + engine() % (most - least + 1);
  }
};

uint32_t addView(ProgramT &program, DType dtype) {
  auto view = std::make_unique<ViewT>();
  view->dtype = dtype;
  program.views.push_back(std::move(view));
  return static_cast<uint32_t>(program.views.size()) - 1;
}

using Dims = std::vector<std::unique_ptr<AxisListT>>;

/// Each axis splits some dim, or none.
Dims randomDims(Random &random, size_t dims, size_t axes) {
  Dims lists;
  for (size_t i = 0; i < dims; ++i)
    lists.push_back(std::make_unique<AxisListT>());
  for (uint32_t axis = 0; axis < axes; ++axis)
    if (uint32_t dim = random(0, static_cast<uint32_t>(dims));
        dim < dims && random(0, 2) > 0) {
      lists[dim]->axes.push_back(axis);
      lists[dim]->layouts.push_back(random(0, 3) == 0 ? Layout::zigzag
                                                      : Layout::block);
    }
  return lists;
}

Dims copyOf(const Dims &dims) {
  Dims copies;
  for (const auto &list : dims)
    copies.push_back(std::make_unique<AxisListT>(*list));
  return copies;
}

struct ParameterShape {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<std::pair<const char *, Dims>> states;
};

ParameterShape randomParameter(Random &random, uint32_t number, size_t axes) {
  ParameterShape made{"p" + std::to_string(number), {}, {}};
  for (uint32_t dims = random(1, 3); dims > 0; --dims)
    made.shape.push_back(random(1, random(0, 3) == 0 ? 200 : 12));
  Dims states = randomDims(random, made.shape.size(), axes);
  for (const char *name : {"master", "first", "second"})
    made.states.emplace_back(
        name, random(0, 4) == 0 ? randomDims(random, made.shape.size(), axes)
                                : copyOf(states));
  made.states.emplace_back("weight",
                           randomDims(random, made.shape.size(), axes));
  return made;
}

void add(ProgramT &program, const ParameterShape &from) {
  auto parameter = std::make_unique<ParameterT>();
  parameter->name = from.name;
  parameter->shape = parameter->file_shape = from.shape;
  for (const auto &[name, dims] : from.states) {
    bool isBf16 =
        std::string(name) == "weight" || std::string(name) == "second";
    StateT &state = keep(*parameter, name,
                         addView(program, isBf16 ? DType::bf16 : DType::f32));
    state.part->dims = copyOf(dims);
  }
  program.parameters.push_back(std::move(parameter));
}

/// Up to three programs along the first axis; a parameter is in some of them.
PlanT randomPlan(Random &random) {
  PlanT plan;
  for (uint32_t axes = random(1, 3); axes > 0; --axes) {
    auto axis = std::make_unique<AxisT>();
    axis->size = random(1, 5);
    plan.mesh.push_back(std::move(axis));
  }
  uint32_t programs = random(1, 3);
  if (programs > 1) {
    plan.program_axes = {0};
    for (uint32_t i = 0; i < plan.mesh[0]->size; ++i)
      plan.program_numbers.push_back(std::min(i, programs - 1));
    programs = std::min(programs, plan.mesh[0]->size);
  }
  for (uint32_t i = 0; i < programs; ++i)
    plan.programs.push_back(std::make_unique<ProgramT>());
  for (uint32_t i = 0; i < 12; ++i) {
    ParameterShape shape = randomParameter(random, i, plan.mesh.size());
    if (programs > 1) // Only what is whole along the axis may be anywhere.
      for (auto &[name, dims] : shape.states)
        for (auto &list : dims)
          if (!list->axes.empty() && list->axes[0] == 0)
            *list = AxisListT();
    uint32_t where = random(1, (1u << programs) - 1);
    for (uint32_t program = 0; program < programs; ++program)
      if (where >> program & 1)
        add(*plan.programs[program], shape);
  }
  return plan;
}

uint32_t ranksOf(const Plan &plan) {
  uint32_t ranks = 1;
  for (const Axis *axis : *plan.mesh())
    ranks *= axis->size();
  return ranks;
}

/// The parts of a rank's parameter, found by looking at every rank.
std::vector<Block> heldBlocks(const Plan &plan, const SavedTensor &tensor,
                              const SavedState &state, uint32_t rank) {
  const Program &program = *plan.programs()->Get(plan::programOf(plan, rank));
  if (program.parameters())
    for (const Parameter *one : *program.parameters())
      if (one->name()->str() == tensor.parameter->name()->str())
        return partOf(plan, one->shape(), *state.part,
                      [&](uint32_t axis) {
                        return plan::coordinateOf(plan, rank, axis);
                      })
            .blocks();
  return {};
}

bool same(const std::vector<Block> &a, const std::vector<Block> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Block &x, const Block &y) {
                      return x.begin == y.begin && x.extent == y.extent;
                    });
}

class Written {
public:
  explicit Written(const Plan &plan) : plan(plan), tensors(savedTensors(plan)) {
    for (uint32_t rank = 0; rank < ranksOf(plan); ++rank)
      boxes.push_back(ownBoxes(plan, tensors, rank));
  }
  void expectOnce() const;
  void expectEven() const;

private:
  int64_t width(const OwnBox &box) const {
    return plan::bytesOf(tensors[box.tensor].states[box.state].dtype);
  }
  const Plan &plan;
  std::vector<SavedTensor> tensors;
  std::vector<std::vector<OwnBox>> boxes; // by rank
};

void Written::expectOnce() const {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<int>> times;
  for (uint32_t i = 0; i < tensors.size(); ++i)
    for (uint32_t s = 0; s < tensors[i].states.size(); ++s) {
      int64_t elements = 1;
      for (int64_t size : *tensors[i].parameter->shape())
        elements *= size;
      times[{i, s}].resize(static_cast<size_t>(elements));
    }
  for (const std::vector<OwnBox> &own : boxes)
    for (const OwnBox &box : own) {
      std::vector<int> &seen = times[{box.tensor, box.state}];
      const auto &shape = *tensors[box.tensor].parameter->shape();
      for (uint64_t i = 0; i < static_cast<uint64_t>(elementsOf(box.block));
           ++i) {
        uint64_t rest = i, place = 0, stride = 1;
        for (size_t d = shape.size(); d-- > 0;) {
          auto extent = static_cast<uint64_t>(box.block.extent[d]);
          place += stride *
                   (static_cast<uint64_t>(box.block.begin[d]) + rest % extent);
          rest /= extent;
          stride *= static_cast<uint64_t>(shape[static_cast<uint32_t>(d)]);
        }
        ++seen.at(place);
      }
    }
  for (const auto &[which, seen] : times)
    EXPECT_TRUE(
        std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }))
        << tensors[which.first].parameter->name()->str() << " "
        << tensors[which.first].states[which.second].name;
}

/// What is held, divided by those that hold the same, and a row a state.
void Written::expectEven() const {
  for (uint32_t rank = 0; rank < boxes.size(); ++rank) {
    double share = 0, slack = 0, own = 0;
    for (const SavedTensor &tensor : tensors)
      for (const SavedState &state : tensor.states) {
        std::vector<Block> held = heldBlocks(plan, tensor, state, rank);
        double bytes = 0, sharers = 0;
        for (const Block &block : held) {
          double size = static_cast<double>(plan::bytesOf(state.dtype));
          for (int64_t extent : block.extent)
            size *= static_cast<double>(extent);
          bytes += size;
        }
        for (uint32_t other = 0; !held.empty() && other < boxes.size(); ++other)
          sharers += same(held, heldBlocks(plan, tensor, state, other));
        if (!held.empty()) {
          share += bytes / sharers;
          slack = std::max(slack, bytes);
        }
      }
    for (const OwnBox &box : boxes[rank])
      own += static_cast<double>(elementsOf(box.block)) *
             static_cast<double>(width(box));
    // A line for each way in which states are split, each with two ends.
    EXPECT_NEAR(own, share, 16 * slack / 2 + 1) << "rank " << rank;
  }
}

TEST(Boxes, everyElementIsWrittenOnceAndBytesAreShared) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Random random{std::mt19937(seed)};
    Holder holder(randomPlan(random));
    Written written(holder.plan());
    written.expectOnce();
    written.expectEven();
    if (::testing::Test::HasFailure())
      return;
  }
}

/// As in a model: matrices of many rows, all of one sharding.
TEST(Boxes, sharesAreEvenToAPercent) {
  for (uint32_t replicas : {1u, 3u, 8u, 64u}) {
    PlanT plan;
    for (uint32_t size : {replicas, 2u}) {
      auto axis = std::make_unique<AxisT>();
      axis->size = size;
      plan.mesh.push_back(std::move(axis));
    }
    plan.programs.push_back(std::make_unique<ProgramT>());
    for (uint32_t i = 0; i < 20; ++i) {
      ParameterShape matrix{"m" + std::to_string(i), {512, 64}, {}},
          norm{"n" + std::to_string(i), {64}, {}};
      for (ParameterShape *one : {&matrix, &norm})
        for (const char *name : {"master", "first", "second"}) {
          Dims dims;
          for (size_t d = 0; d < one->shape.size(); ++d)
            dims.push_back(std::make_unique<AxisListT>());
          if (one == &matrix)
            dims[0]->axes = {1};
          one->states.emplace_back(name, std::move(dims));
        }
      add(*plan.programs[0], matrix);
      add(*plan.programs[0], norm);
    }
    for (auto &parameter : plan.programs[0]->parameters)
      stateOf(*parameter, "master").role = StateRole::weight;
    Holder holder(plan);
    uint64_t least = UINT64_MAX, most = 0, sum = 0;
    for (uint32_t rank = 0; rank < 2 * replicas; ++rank) {
      uint64_t bytes = savedBytes(holder.plan(), rank);
      least = std::min(least, bytes);
      most = std::max(most, bytes);
      sum += bytes;
    }
    EXPECT_LE(static_cast<double>(most - least),
              0.01 * static_cast<double>(sum) / (2 * replicas) + 2 * 256)
        << replicas;
  }
}

/// A rank finds its boxes without a look at a million others.
TEST(Boxes, costDoesNotGrowWithTheMesh) {
  PlanT plan;
  auto axis = std::make_unique<AxisT>();
  axis->size = 1u << 31;
  plan.mesh.push_back(std::move(axis));
  plan.programs.push_back(std::make_unique<ProgramT>());
  ParameterShape shape{"p", {100, 8}, {}};
  for (const char *name : {"weight", "first"}) {
    Dims dims;
    for (int d = 0; d < 2; ++d)
      dims.push_back(std::make_unique<AxisListT>());
    shape.states.emplace_back(name, std::move(dims));
  }
  add(*plan.programs[0], shape);
  Holder holder(plan);
  EXPECT_LE(savedBytes(holder.plan(), 12345), 8 * 4u);
}

} // namespace
} // namespace meshwork::plan::test
