// Every pair of shardings on small meshes: the plan's steps, carried out on all
// ranks, give the right values, and no other sequence of steps sends less or is
// as cheap and shorter. Other sequences leave alone what planReshard leaves
// alone; where sizes are even this restriction must cost nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "lib/Sharding/Reshard.h"
#include "test/Sharding/Enumerate.h"
#include "test/Sharding/Ranks.h"
#include "test/Sharding/ShortestPath.h"

namespace meshwork::sharding::test {
namespace {

struct Case {
  std::vector<int64_t> axes;
  std::vector<int64_t> shape;
  Reduction reduction = Reduction::sum;
};

Mesh meshOf(const std::vector<int64_t> &sizes) {
  Mesh mesh;
  for (size_t i = 0; i < sizes.size(); ++i)
    mesh.axes.push_back({std::string(1, static_cast<char>('a' + i)), sizes[i]});
  return mesh;
}

bool becomesPartial(const Sharding &from, const Sharding &to) {
  for (AxisId axis : to.partial)
    if (std::find(from.partial.begin(), from.partial.end(), axis) ==
        from.partial.end())
      return true;
  return false;
}

std::string stepsText(const Mesh &mesh, const Plan &plan) {
  std::string text;
  for (const Step &step : plan.steps)
    text += "  " + step.text(mesh) + " -> " + step.after.text(mesh) + ", " +
            std::to_string(step.bytesSent) + " bytes\n";
  return text;
}

/// The axes that split each dim of both from the major end.
Sharding sharedBy(const Sharding &a, const Sharding &b) {
  Sharding shared = a;
  for (size_t dim = 0; dim < a.dims.size(); ++dim) {
    auto &axes = shared.dims[dim];
    axes.erase(std::mismatch(axes.begin(), axes.end(), b.dims[dim].begin(),
                             b.dims[dim].end())
                   .first,
               axes.end());
  }
  return shared;
}

class Pairs : public testing::TestWithParam<Case> {
protected:
  Mesh mesh = meshOf(GetParam().axes);
  std::vector<int64_t> shape = GetParam().shape;
  std::vector<Sharding> shardings =
      allShardings(mesh, shape.size(), GetParam().reduction);
  Graph graph{mesh, shape, 4, shardings};
  std::map<std::pair<unsigned, std::string>, std::vector<Cost>> costs;
  bool even = std::all_of(shape.begin(), shape.end(), [&](int64_t size) {
    return size % mesh.numRanks() == 0;
  });
  int64_t plans = 0, errors = 0;
  int failures = 0;

  Cost best(size_t from, size_t to, const Sharding &kept) {
    unsigned idle = graph.idleIn(from, to);
    auto [it, isNew] = costs.try_emplace({idle, kept.text(mesh)});
    if (isNew)
      it->second = graph.costsFrom(from, idle, kept);
    return it->second[to];
  }

  void expectCost(const Plan &plan, Cost cost) {
    EXPECT_EQ(plan.bytesSent(), cost.bytes);
    EXPECT_EQ(static_cast<int64_t>(plan.steps.size()), cost.steps);
  }

  void expectValues(const Sharding &from, const Sharding &to,
                    const Plan &plan) {
    Ranks ranks(mesh, shape, from, 7);
    ASSERT_EQ(ranks.numWrong(from), 0);
    Sharding current = from;
    for (const Step &step : plan.steps) {
      ASSERT_EQ(step.before, current);
      ranks.apply(step);
      ASSERT_EQ(ranks.numWrong(step.after), 0)
          << step.text(mesh) << " from " << step.before.text(mesh);
      current = step.after;
    }
    ASSERT_EQ(current, to);
  }

  void check(size_t i, size_t j) {
    const Sharding &from = shardings[i], &to = shardings[j];
    std::string error;
    std::optional<Plan> plan = planReshard(mesh, shape, 4, from, to, error);
    ASSERT_EQ(plan.has_value(), !becomesPartial(from, to)) << error;
    ++(plan ? plans : errors);
    if (!plan)
      return;
    SCOPED_TRACE(from.text(mesh) + " to " + to.text(mesh) + "\n" +
                 stepsText(mesh, *plan));
    ASSERT_NO_FATAL_FAILURE(expectValues(from, to, *plan));
    ASSERT_TRUE(plan->leastBytes);
    expectCost(*plan, best(i, j, sharedBy(from, to)));
    Sharding nothing;
    nothing.dims.resize(shape.size());
    if (even)
      expectCost(*plan, best(i, j, nothing));
    if (HasFailure() && ++failures > 5)
      FAIL() << "and perhaps more";
  }
};

TEST_P(Pairs, ValuesAndBytes) {
  for (size_t i = 0; i < shardings.size(); ++i) {
    costs.clear();
    for (size_t j = 0; j < shardings.size(); ++j)
      ASSERT_NO_FATAL_FAILURE(check(i, j));
  }
  EXPECT_GT(plans, 100);
  EXPECT_GT(errors, 10);
}

/// Four axes have too many pairs for all of them: a fixed sample.
class SomePairs : public Pairs {};

TEST_P(SomePairs, ValuesAndBytes) {
  std::mt19937 random(20);
  for (int i = 0; i < 1500; ++i) {
    size_t from = random() % shardings.size();
    costs.clear();
    ASSERT_NO_FATAL_FAILURE(check(from, random() % shardings.size()));
  }
  EXPECT_GT(plans, 100);
}

/// Layouts by chance: the plan need not be the cheapest, but is right.
class ZigzagPairs : public Pairs {
protected:
  std::mt19937 random{21};

  Sharding one() {
    Sharding sharding = shardings[random() % shardings.size()];
    for (auto &axes : sharding.dims)
      for (AxisId &axis : axes)
        axis.layout = random() % 2 ? DimLayout::zigzag : DimLayout::block;
    return sharding;
  }
};

TEST_P(ZigzagPairs, Values) {
  for (int i = 0; i < 1000; ++i) {
    Sharding from = one(), to = one();
    std::string error;
    std::optional<Plan> plan = planReshard(mesh, shape, 4, from, to, error);
    ASSERT_EQ(plan.has_value(), !becomesPartial(from, to)) << error;
    if (!plan)
      continue;
    ++plans;
    SCOPED_TRACE(from.text(mesh) + " to " + to.text(mesh) + "\n" +
                 stepsText(mesh, *plan));
    ASSERT_NO_FATAL_FAILURE(expectValues(from, to, *plan));
  }
  EXPECT_GT(plans, 100);
}

std::string nameOf(const testing::TestParamInfo<Case> &info) {
  std::string name = "mesh";
  for (int64_t size : info.param.axes)
    name += "_" + std::to_string(size);
  name += "_tensor";
  for (int64_t size : info.param.shape)
    name += "_" + std::to_string(size);
  return name + (info.param.reduction == Reduction::max ? "_max" : "");
}

INSTANTIATE_TEST_SUITE_P(
    Reshard, Pairs,
    testing::Values(Case{{2, 2}, {4, 8}}, Case{{2, 2}, {5, 6}},
                    Case{{2, 2}, {3, 4, 7}}, Case{{2, 2}, {1, 3}},
                    Case{{2, 4}, {8, 16}}, Case{{2, 4}, {5, 6}},
                    Case{{2, 4}, {8, 8, 8}}, Case{{2, 4}, {3, 4, 7}},
                    Case{{2, 4}, {5, 6}, Reduction::max}, Case{{2, 3}, {7, 6}},
                    Case{{2, 2, 2}, {8, 8}}, Case{{2, 2, 2}, {5, 6}},
                    Case{{2, 2, 2}, {3, 4, 7}}, Case{{2, 2, 2}, {12, 3}},
                    Case{{2, 4, 2}, {12, 5}}),
    nameOf);

INSTANTIATE_TEST_SUITE_P(Reshard, SomePairs,
                         testing::Values(Case{{2, 2, 2, 2}, {16, 16}},
                                         Case{{2, 2, 2, 2}, {11, 20}},
                                         Case{{2, 3, 2, 4}, {10, 7}}),
                         nameOf);

INSTANTIATE_TEST_SUITE_P(Reshard, ZigzagPairs,
                         testing::Values(Case{{2, 4}, {16, 8}},
                                         Case{{2, 2, 2}, {5, 6}},
                                         Case{{2, 3, 2}, {12, 7}}),
                         nameOf);

} // namespace
} // namespace meshwork::sharding::test
