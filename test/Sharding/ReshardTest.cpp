// Plans a reader can check by hand, errors, and what large meshes cost.
#include <gtest/gtest.h>

#include "lib/Sharding/Reshard.h"

namespace meshwork::sharding {
namespace {

// dp 2, tp 4, and an axis of one rank.
const Mesh mesh{{{"dp", 2}, {"tp", 4}, {"one", 1}, {"sp", 4}}};
constexpr AxisId dp = 0, tp = 1, one = 2, sp = 3;
using Shape = std::vector<int64_t>;

Sharding split(std::vector<std::vector<AxisId>> dims,
               std::vector<AxisId> partial = {},
               Reduction reduction = Reduction::sum) {
  return {std::move(dims), std::move(partial), reduction};
}

std::string planText(const Shape &shape, const Sharding &from,
                     const Sharding &to) {
  std::string error, text;
  std::optional<Plan> plan = planReshard(mesh, shape, 2, from, to, error);
  if (!plan)
    return "error: " + error;
  for (const Step &step : plan->steps)
    text += (text.empty() ? "" : "; ") + step.text(mesh) + " = " +
            std::to_string(step.bytesSent);
  return text;
}

TEST(Reshard, OneStepEach) {
  Shape shape{64, 32}; // 4096 bytes
  EXPECT_EQ(planText(shape, split({{}, {}}), split({{}, {tp}})),
            R"(slice {"tp"} dim 1 = 0)");
  EXPECT_EQ(planText(shape, split({{tp}, {}}), split({{}, {}})),
            R"(all_gather {"tp"} dim 0 = 3072)");
  EXPECT_EQ(planText(shape, split({{}, {}}, {tp}), split({{}, {}})),
            R"(all_reduce {"tp"} = 6144)");
  EXPECT_EQ(planText(shape, split({{}, {}}, {tp}), split({{tp}, {}})),
            R"(reduce_scatter {"tp"} dim 0 = 3072)");
  EXPECT_EQ(planText(shape, split({{tp}, {}}), split({{}, {tp}})),
            R"(all_to_all {"tp"} dim 0 to dim 1 = 768)");
  EXPECT_EQ(planText(shape, split({{tp}, {}}), split({{sp}, {}})),
            R"(permute {"tp", "sp"} = 1024)");
  EXPECT_EQ(planText(shape, split({{tp, dp}, {}}), split({{dp, tp}, {}})),
            R"(permute {"dp", "tp"} = 512)");
}

TEST(Reshard, NothingToDo) {
  Sharding same = split({{dp}, {tp}}, {sp});
  EXPECT_EQ(planText({5, 6}, same, same), "");
  EXPECT_EQ(planText({5, 6}, split({{one}, {}}), split({{}, {one}})), "");
  EXPECT_EQ(planText({}, split({}), split({})), "");
}

TEST(Reshard, AxesThatStandTogetherMoveTogether) {
  EXPECT_EQ(planText({64, 32}, split({{dp, tp}, {}}), split({{}, {}})),
            R"(all_gather {"dp", "tp"} dim 0 = 3584)");
  EXPECT_EQ(planText({64, 32}, split({{}, {}}, {dp, tp}), split({{}, {}})),
            R"(all_reduce {"dp", "tp"} = 7168)");
  EXPECT_EQ(planText({}, split({}, {dp, tp}), split({})),
            R"(all_reduce {"dp", "tp"} = 3)");
}

TEST(Reshard, UnevenBlocksAreGatheredAxisByAxis) {
  // 10 over dp is 5, over tp 2: four blocks of 2 are not a block of 5.
  EXPECT_EQ(planText({10, 1}, split({{dp, tp}, {}}), split({{}, {}})),
            R"(all_gather {"tp"} dim 0 = 12; all_gather {"dp"} dim 0 = 10)");
}

TEST(Reshard, PartialThatWillBeSplitIsScattered) {
  // Megatron with sequence parallelism: the sequence is on dim 1.
  EXPECT_EQ(planText({8, 64, 32}, split({{dp}, {}, {}}, {tp}),
                     split({{dp}, {tp}, {}})),
            R"(reduce_scatter {"tp"} dim 1 = 12288)");
  EXPECT_EQ(planText({8, 64, 32}, split({{dp}, {}, {}}, {tp}, Reduction::max),
                     split({{dp}, {tp}, {}})),
            R"(reduce_scatter {"tp"} dim 1 = 12288)");
  // Partial over sp stays so.
  EXPECT_EQ(
      planText({8, 64}, split({{}, {}}, {tp, sp}), split({{}, {tp}}, {sp})),
      R"(reduce_scatter {"tp"} dim 1 = 768)");
}

TEST(Reshard, IdleAxesAreLeftAlone) {
  // Slicing over dp first would send fewer bytes, on dp's links.
  EXPECT_EQ(planText({64, 32}, split({{}, {}}, {tp}), split({{}, {}})),
            R"(all_reduce {"tp"} = 6144)");
}

TEST(Reshard, SizesOfNothing) {
  EXPECT_EQ(planText({0, 4}, split({{tp}, {}}), split({{}, {tp}})),
            R"(all_to_all {"tp"} dim 0 to dim 1 = 0)");
  EXPECT_EQ(planText({1}, split({{tp}}), split({{}})),
            R"(all_gather {"tp"} dim 0 = 6)");
}

TEST(ReshardErrors, SayWhatIsWrong) {
  EXPECT_EQ(planText({4}, split({{}, {}}), split({{}})),
            "error: source: found a sharding of 2 dims, expected the tensor's "
            "1");
  EXPECT_EQ(planText({4}, split({{}}), split({{9}})),
            "error: target: dim 0: found axis #9, expected one of the mesh's 4 "
            "axes");
  EXPECT_EQ(planText({4}, split({{tp}}, {dp}), split({{}}, {tp})),
            R"(error: the target is partial over "tp", where the source )"
            R"([{"tp"}] partial sum {"dp"} is not; no step makes a value )"
            R"(partial)");
  EXPECT_EQ(
      planText({4}, split({{}}, {tp, dp}), split({{}}, {tp}, Reduction::max)),
      "error: found a partial sum on one side and a partial max on the "
      "other, expected the same kind of reduction: "
      R"([{}] partial sum {"dp", "tp"} and [{}] partial max {"tp"})");
  const std::string large =
      "error: the tensor, padded to 4 ranks, is larger than 2^58 bytes; use a "
      "smaller tensor or mesh";
  const int64_t many = int64_t{1} << 30;
  EXPECT_EQ(planText({many, many}, split({{tp}, {}}), split({{}, {}})), large);
  EXPECT_EQ(planText({many, many / 32, 1}, split({{tp}, {}, {}}),
                     split({{}, {}, {tp}})),
            large);
  EXPECT_EQ(planText({many, many / 64, 1}, split({{tp}, {}, {}}),
                     split({{}, {}, {tp}})),
            R"(all_to_all {"tp"} dim 0 to dim 2 = 27021597764222976)");
  std::string error;
  EXPECT_FALSE(planReshard(mesh, {4}, 0, split({{}}), split({{}}), error));
  EXPECT_EQ(error, "found elements of 0 bytes, expected 1 or more");
}

TEST(Planner, RemembersPlansAndReportsErrors) {
  Planner planner(mesh);
  std::string error;
  const Plan *plan =
      planner.plan({64, 32}, 2, split({{tp}, {}}), split({{}, {}}), error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->bytesSent(), 3072);
  EXPECT_EQ(
      planner.plan({64, 32}, 2, split({{tp}, {}}), split({{}, {}}), error),
      plan);
  const Plan *wider =
      planner.plan({64, 32}, 4, split({{tp}, {}}), split({{}, {}}), error);
  EXPECT_EQ(wider->bytesSent(), 6144);
  EXPECT_FALSE(planner.plan({4}, 2, split({{}}), split({{7}}), error));
  EXPECT_NE(error, "");
}

TEST(Permute, SourcesAreABijectionAndLeaveOtherAxesAlone) {
  Step step;
  step.kind = Step::Kind::permute;
  step.before = split({{tp}, {dp}});
  step.after = split({{sp}, {dp}});
  std::vector<int> sent(static_cast<size_t>(mesh.numRanks()));
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
    int64_t source = permuteSource(mesh, step, rank);
    ++sent[static_cast<size_t>(source)];
    EXPECT_EQ(mesh.coordinate(source, dp), mesh.coordinate(rank, dp));
    EXPECT_EQ(mesh.coordinate(source, tp), mesh.coordinate(rank, sp));
  }
  for (int count : sent)
    EXPECT_EQ(count, 1);
}

} // namespace
} // namespace meshwork::sharding
