// Sharded parameters in and out of files: whatever the mesh and the sharding,
// the bytes on disk are those of one rank that holds all.
#include "RunCase.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/io/SafeTensors.h"
#include <numeric>

namespace meshwork::runtime::test {
using namespace plan::test;
namespace {
using Dims = std::vector<std::vector<uint32_t>>;
using plan::BufferKind, plan::DType, plan::PlanT, plan::ProgramT;

class ShardedState : public RunCase {};

/// ceil blocks, axis by axis.
std::vector<int64_t> local(const PlanT &plan, std::vector<int64_t> shape,
                           const Dims &dims) {
  for (size_t i = 0; i < dims.size(); ++i)
    for (uint32_t axis : dims[i])
      shape[i] = (shape[i] + plan.mesh[axis]->size - 1) /
                 static_cast<int64_t>(plan.mesh[axis]->size);
  return shape;
}

struct Shardings {
  Dims weight, master;
  bool bf16 = false, strided = false;
};

/// One more parameter, which no instruction uses. Its "gradient" is the weight
/// itself, so that saving gradients saves known values in another sharding.
void addParameter(PlanT &plan, const char *name, std::vector<int64_t> shape,
                  const Shardings &how) {
  ProgramT &program = *plan.programs[0];
  auto add = [&](const Dims &dims, DType dtype) {
    std::vector<int64_t> block = local(plan, shape, dims), padded = block;
    if (how.strided)
      padded.back() += 3;
    uint32_t view =
        addTensor(program, name, BufferKind::weights, dtype, padded);
    program.views[view]->shape = block;
    return view;
  };
  auto parameter = std::make_unique<plan::ParameterT>();
  parameter->name = name;
  parameter->shape = shape;
  parameter->file_shape = {
      std::accumulate(shape.begin(), shape.end(), int64_t{1},
                      [](int64_t a, int64_t b) { return a * b; })};
  parameter->init = plan::InitKind::normal;
  parameter->init_b = 1;
  uint32_t weights = add(how.weight, how.bf16 ? DType::bf16 : DType::f32);
  keep(*parameter, "weight", weights, how.weight);
  keep(*parameter, "master", add(how.master, DType::f32), how.master);
  keep(*parameter, "gradient", weights, how.weight);
  program.parameters.push_back(std::move(parameter));
}

void addParameters(PlanT &plan, const Shardings &how) {
  addParameter(plan, "even", {8, 12}, how);
  addParameter(plan, "uneven", {7, 5}, how);
  addParameter(plan, "wide", {3, 70001}, how);
}

PlanT onMesh(std::vector<uint32_t> mesh) {
  PlanT plan = tinyPlan({.ranks = mesh[0]});
  for (size_t i = 1; i < mesh.size(); ++i)
    addAxis(plan, "more", mesh[i]);
  return plan;
}

struct Case {
  std::vector<uint32_t> mesh;
  Shardings how;
};

const Case cases[] = {
    {{4}, {{{0}, {}}, {{0}, {}}}},
    {{4}, {{{}, {0}}, {{0}, {}}}},
    {{3}, {{{}, {}}, {{}, {0}}}},
    {{2, 2}, {{{0, 1}, {}}, {{1, 0}, {}}}},
    {{2, 2}, {{{1}, {0}}, {{0}, {1}}}},
    {{2, 3}, {{{}, {1}}, {{0}, {1}}}},
    {{2, 3}, {{{1, 0}, {}}, {{}, {0, 1}}}},
    {{4}, {{{}, {}}, {{0}, {}}, true}},
    {{2, 2}, {{{}, {1}}, {{0}, {1}}, true}},
    {{2, 2}, {{{0}, {1}}, {{1}, {0}}, false, true}},
    {{2, 2}, {{{0}, {1}}, {{1}, {0}}, true, true}},
};

TEST_F(ShardedState, startsFromTheSeedAsOneRankDoes) {
  options.steps = 0;
  PlanT one = onMesh({1});
  addParameters(one, {});
  std::string expected = saved(one);
  for (const Case &c : cases) {
    PlanT plan = onMesh(c.mesh);
    addParameters(plan, c.how);
    EXPECT_TRUE(saved(plan) == expected) << &c - cases;
  }
}

TEST_F(ShardedState, passesThroughFilesUnchanged) {
  options.steps = 0;
  options.seed = 5;
  PlanT one = onMesh({1});
  addParameters(one, {});
  std::string file = saved(one);
  options.init = temporary("init.safetensors");
  writeFile(options.init, file.data(), file.size());
  options.seed = 6;
  for (const Case &c : cases) {
    PlanT plan = onMesh(c.mesh);
    addParameters(plan, c.how);
    EXPECT_TRUE(saved(plan) == file) << &c - cases;
  }
}

std::vector<float> tensor(const std::string &path, const char *name) {
  auto reader = SafeTensorsReader::open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  std::vector<float> values((*reader)->find(name)->numElements);
  EXPECT_TRUE((*reader)->read(name, absl::MakeSpan(values)).ok());
  return values;
}

TEST_F(ShardedState, gradientsHaveAShardingOfTheirOwn) {
  options.steps = 1;
  options.saveGradients = temporary("gradients.safetensors");
  for (const Case &c : cases) {
    PlanT plan = onMesh(c.mesh);
    addParameters(plan, c.how);
    (void)saved(plan);
    for (const char *name : {"even", "uneven", "wide"}) {
      std::vector<float> master = tensor(options.save, name),
                         weight = tensor(options.saveGradients, name);
      if (!c.how.bf16) {
        EXPECT_EQ(master, weight) << name << ", case " << &c - cases;
        continue;
      }
      for (size_t i = 0; i < master.size(); ++i)
        ASSERT_NEAR(master[i], weight[i], std::abs(master[i]) / 256) << name;
    }
  }
}

// ZeRO in f32: the master is the rank's own rows of the weight. The tiny plan
// trains as on whole masters, and the padding of 259 rows stays out of files.
TEST_F(ShardedState, aMasterMayBeAPartOfTheWeight) {
  PlanT whole = tinyPlan({.ranks = 3}), split = whole;
  std::string expected = saved(whole);
  ProgramT &p = *split.programs[0];
  uint32_t buffer = p.views[weight]->buffer;
  p.buffers[buffer]->size_bytes = 258 * 8 * 4;
  for (size_t i = buffer + 1; i < p.buffers.size(); ++i)
    p.buffers[i]->offset += 64;
  p.arena_bytes += 64;
  uint32_t own = addView(p, buffer, DType::f32, {86, 8});
  shift(p, own, {0}, 86 * 8 * 4);
  keep(*p.parameters[0], "master", own, {{0}, {}});
  EXPECT_TRUE(saved(split) == expected);
}

TEST_F(ShardedState, theWeightAloneIsTheMasterInF32) {
  PlanT plan = tinyPlan();
  std::string expected = saved(plan);
  drop(*plan.programs[0]->parameters[0], "master");
  EXPECT_TRUE(saved(plan) == expected);
}

// Saved in the place of the gradient, which nothing writes.
TEST_F(ShardedState, whatAnOptimizerKeepsBeginsWithItsInitialValue) {
  options.steps = 1;
  options.saveGradients = temporary("gradients.safetensors");
  PlanT plan = onMesh({3});
  addParameter(plan, "uneven", {7, 5}, {});
  ProgramT &p = *plan.programs[0];
  uint32_t squares =
      addTensor(p, "squares", plan::BufferKind::optimizer, DType::f32, {3, 5});
  keep(*p.parameters.back(), "squares", squares, {{0}, {}}).initial = 0.25f;
  keep(*p.parameters.back(), "gradient", squares, {{0}, {}});
  (void)saved(plan);
  EXPECT_EQ(tensor(options.saveGradients, "uneven"),
            std::vector<float>(35, 0.25f));
}

// Two programs, each with the rows of its rank.
TEST_F(ShardedState, blocksComeFromSeveralPrograms) {
  options.steps = 0;
  PlanT one = onMesh({1}), two = onMesh({2});
  addParameters(one, {});
  addParameters(two, {{{0}, {}}, {{0}, {}}});
  two.programs.push_back(std::make_unique<ProgramT>(*two.programs[0]));
  setPrograms(two, {0, 1});
  EXPECT_TRUE(saved(two) == saved(one));
  two.programs[1]->parameters.pop_back();
  expectExit(two, 65,
             "parameter \"wide\": no rank holds the block that begins at [");
  two.programs[1]->parameters.pop_back();
  two.programs[0]->parameters.pop_back();
  two.programs[1]->parameters.back()->init_b = 2;
  expectExit(two, 65, "parameter \"even\": programs 0 and 1 disagree");
  plan::ParameterT &even = *two.programs[1]->parameters.back();
  even.init_b = 1;
  keep(even, "momentum", stateOf(even, "master").part->view, {{0}, {}});
  expectExit(two, 65, "parameter \"even\": programs 0 and 1 disagree");
}

} // namespace
} // namespace meshwork::runtime::test
