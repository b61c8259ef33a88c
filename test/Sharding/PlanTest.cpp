// Time to plan on large meshes, and requests too large to search.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "lib/Sharding/Reshard.h"

namespace meshwork::sharding {
namespace {

using Shape = std::vector<int64_t>;

/// Of a processor: the least of a few runs, as other processes share it.
double planUs(const Mesh &mesh, const Shape &shape, const Sharding &from,
              const Sharding &to) {
  double best = 1e30;
  for (int run = 0; run < 5; ++run) {
    std::clock_t start = std::clock();
    std::string error;
    std::optional<Plan> plan = planReshard(mesh, shape, 2, from, to, error);
    double time = 1e6 * static_cast<double>(std::clock() - start) /
                  static_cast<double>(CLOCKS_PER_SEC);
    EXPECT_TRUE(plan && plan->leastBytes) << error;
    best = std::min(best, time);
  }
  printf("%8.1f us  %s to %s\n", best, from.text(mesh).c_str(),
         to.text(mesh).c_str());
  return best;
}

Sharding split(std::vector<std::vector<AxisId>> dims,
               std::vector<AxisId> partial = {}) {
  return {std::move(dims), std::move(partial), Reduction::sum};
}

TEST(PlanTime, FewAxes) {
  Mesh mesh{
      {{"pp", 4}, {"dp", 2048}, {"cp", 8}, {"tp", 8}, {"ep", 4}, {"x", 2}}};
  Shape shape{4096, 8192, 64, 128, 16};
  const std::vector<std::pair<Sharding, Sharding>> requests = {
      {split({{1}, {2}, {}, {}, {}}, {3}), split({{1}, {2, 3}, {}, {}, {}})},
      {split({{1}, {2}, {}, {}, {}}), split({{1}, {}, {2}, {}, {}})},
      {split({{1, 3}, {2}, {}, {}, {}}), split({{3}, {2}, {}, {1}, {}})},
      {split({{1, 3}, {2}, {}, {}, {}}), split({{3, 1}, {2}, {}, {}, {}})},
      {split({{}, {2}, {}, {}, {}}, {1, 3}), split({{1}, {2}, {3}, {}, {}})},
      {split({{}, {2}, {}, {}, {}}, {1, 3}), split({{}, {2}, {}, {}, {}})},
      {split({{}, {2, 3}, {}, {}, {}}), split({{}, {3}, {2}, {}, {}})}};
  for (const auto &[from, to] : requests)
    EXPECT_LT(planUs(mesh, shape, from, to), 1000);
}

TEST(PlanTime, FourAxes) {
  Mesh mesh{{{"a", 8}, {"b", 2}, {"c", 4}, {"d", 8}}};
  Shape shape{4096, 8192, 64, 128};
  const std::vector<std::pair<Sharding, Sharding>> requests = {
      {split({{}, {}, {}, {}}, {0, 1, 2, 3}), split({{0}, {1}, {2}, {3}})},
      {split({{0}, {1}, {2}, {3}}), split({{3}, {2}, {1}, {0}})},
      {split({{0, 1, 2, 3}, {}, {}, {}}), split({{}, {}, {3, 1, 2, 0}, {}})},
      {split({{0, 1}, {}, {}, {}}, {2, 3}), split({{3}, {}, {1, 0}, {2}})},
      {split({{0, 1}, {2, 3}, {}, {}}), split({{}, {}, {}, {}})},
      {split({{0, 1}, {2, 3}, {}, {}}), split({{3, 1}, {}, {}, {}})}};
  for (const auto &[from, to] : requests)
    EXPECT_LT(planUs(mesh, shape, from, to), 100000);
}

TEST(Plan, TooManyAxesToSearchGoThroughReplicated) {
  Mesh mesh;
  Sharding from = split({{}, {}, {}}), to = from;
  for (AxisId axis = 0; axis < 9; ++axis) {
    mesh.axes.push_back({std::string(1, static_cast<char>('a' + axis)), 2});
    from.dims[axis < 5 ? 0 : 1].push_back(axis);
    to.dims[2].push_back(axis);
  }
  from.dims[1].pop_back();
  from.partial = {8};
  std::string error;
  std::optional<Plan> plan =
      planReshard(mesh, {64, 64, 512}, 2, from, to, error);
  ASSERT_TRUE(plan) << error;
  EXPECT_FALSE(plan->leastBytes);
  EXPECT_EQ(plan->steps.back().after, to);
  EXPECT_EQ(plan->steps.size(), 1u + 8 + 9);
  // 8 KiB a rank, reduced; then doubled eight times.
  EXPECT_EQ(plan->steps[0].bytesSent, 2 * 64 * 64 * 512 / 256);
  EXPECT_EQ(plan->bytesSent(), 2 * 64 * 64 * 512);
}

} // namespace
} // namespace meshwork::sharding
