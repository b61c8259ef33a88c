// Which code runs on a GPU, which GPU a rank gets, and when two devices agree.
#include "runtime/device/cuda/AttentionGraph.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/run/Allowance.h"
#include <cmath>
#include <gtest/gtest.h>

namespace meshwork::runtime {
namespace {
using cuda::chooseGpus;
using cuda::GpuNames;
using cuda::runsOn;
using plan::ImageKind;

TEST(Image, CubinsRunOnTheirMajorVersionFromTheirMinorOn) {
  EXPECT_TRUE(runsOn("sm_80", ImageKind::cubin, 8, 0));
  EXPECT_TRUE(runsOn("sm_80", ImageKind::cubin, 8, 9));
  EXPECT_FALSE(runsOn("sm_80", ImageKind::cubin, 9, 0));
  EXPECT_FALSE(runsOn("sm_86", ImageKind::cubin, 8, 0));
  EXPECT_TRUE(runsOn("sm_100", ImageKind::cubin, 10, 3));
}

TEST(Image, PtxRunsOnAllLaterOnes) {
  EXPECT_TRUE(runsOn("sm_80", ImageKind::ptx, 12, 0));
  EXPECT_FALSE(runsOn("sm_100", ImageKind::ptx, 9, 0));
}

TEST(Image, ArchitectureSpecificCodeRunsThereAlone) {
  EXPECT_TRUE(runsOn("sm_90a", ImageKind::cubin, 9, 0));
  EXPECT_TRUE(runsOn("sm_90a", ImageKind::ptx, 9, 0));
  EXPECT_FALSE(runsOn("sm_90a", ImageKind::ptx, 10, 0));
}

TEST(Image, OtherNamesRunNowhere) {
  for (const char *name :
       {"", "sm_", "sm_a", "sm_9x", "x86-64-v4", "sm_99999999999"})
    EXPECT_FALSE(runsOn(name, ImageKind::ptx, 9, 0)) << name;
}

TEST(ChooseGpus, OneEach) {
  DeviceOptions options;
  options.ranks = 3;
  auto chosen = chooseGpus(options, {GpuNames{"a", "b", "c", "d"}});
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(*chosen, (std::vector<int>{0, 1, 2}));
}

TEST(ChooseGpus, TooFewIsRefusedUnlessShared) {
  DeviceOptions options;
  options.ranks = 2;
  auto chosen = chooseGpus(options, {GpuNames{"a"}});
  EXPECT_EQ(chosen.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(chosen.status().message().find(
                "2 ranks on this machine need as many GPUs, there is 1"),
            std::string::npos);
  options.shareGpu = true;
  chosen = chooseGpus(options, {GpuNames{"a"}});
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(*chosen, (std::vector<int>{0, 0}));
}

/// That of each process; -1 where it has none.
std::vector<int> chosenBy(const std::vector<GpuNames> &seen) {
  std::vector<int> all;
  for (uint32_t process = 0; process < seen.size(); ++process) {
    DeviceOptions options;
    options.process = process;
    auto chosen = chooseGpus(options, seen);
    all.push_back(chosen.ok() ? chosen->at(0) : -1);
  }
  return all;
}

TEST(ChooseGpus, WhateverTheLauncherShows) {
  using Chosen = std::vector<int>;
  GpuNames all{"a", "b"}, others{"c", "d"};
  EXPECT_EQ(chosenBy({all, all, others, others}), (Chosen{0, 1, 0, 1}));
  EXPECT_EQ(chosenBy({all, others, all, others}), (Chosen{0, 0, 1, 1}));
  EXPECT_EQ(chosenBy({{"a"}, {"b"}}), (Chosen{0, 0}));
  EXPECT_EQ(chosenBy({{"a", "b"}, {"b", "a"}}), (Chosen{0, 0}));
  EXPECT_EQ(chosenBy({{"a"}, {"a"}, {"b"}}), (Chosen{0, -1, 0}));
}

TEST(AttentionGraph, DescribesWholeSequencesInBf16) {
  cuda::AttentionProblem whole;
  EXPECT_TRUE(cuda::checkGraph(whole).ok());
  auto expectLeft = [](const cuda::AttentionProblem &problem, const char *why) {
    absl::Status status = cuda::checkGraph(problem);
    EXPECT_TRUE(absl::IsUnimplemented(status));
    EXPECT_EQ(status.message(), why);
  };
  cuda::AttentionProblem part = whole;
  part.queries = {{0, 4, 0}};
  expectLeft(part, "a part of a sequence's queries");
  part.keys = {{0, 4, 0}};
  expectLeft(part, "a part of a sequence's keys");
  for (auto result :
       {&cuda::AttentionProblem::out, &cuda::AttentionProblem::dq,
        &cuda::AttentionProblem::dk, &cuda::AttentionProblem::dv}) {
    cuda::AttentionProblem wide = whole;
    (wide.*result).isF32 = true;
    expectLeft(wide, "a result is f32, expected bf16");
  }
}

class Allowance : public testing::Test {
protected:
  double share(std::vector<float> expected, std::vector<float> got,
               bool inexact = false) {
    shape[0] = static_cast<int64_t>(got.size());
    plan::ViewInfo view{};
    view.dtype = plan::DType::f32;
    view.shape = shape;
    view.strides = strides;
    view.elements = shape[0];
    auto bytes = [](const std::vector<float> &v) {
      return absl::MakeConstSpan(reinterpret_cast<const std::byte *>(v.data()),
                                 v.size() * sizeof(float));
    };
    ThreadTeam team(2, {});
    return shareOfAllowance(view, bytes(expected), bytes(got), inexact, team);
  }
  int64_t shape[1] = {0}, strides[1] = {1};
};

TEST_F(Allowance, EqualIsNothing) {
  EXPECT_EQ(share({1, -2, 0}, {1, -2, 0}), 0);
}
TEST_F(Allowance, RoundingPasses) {
  EXPECT_LT(share({1, 2, 3}, {1.00001f, 2, 3}), 1);
}
TEST_F(Allowance, AWrongElementAmongManyFails) {
  std::vector<float> expected(1000, 1), got = expected;
  got[700] = 1.01f;
  EXPECT_GT(share(expected, got), 1);
  EXPECT_LT(share(expected, got, /*inexact=*/true), 1);
  got[700] = 0;
  EXPECT_GT(share(expected, got, /*inexact=*/true), 1);
}
TEST_F(Allowance, NaNMustMeetNaN) {
  EXPECT_EQ(share({NAN, 1}, {NAN, 1}), 0);
  EXPECT_EQ(share({1, 1}, {NAN, 1}), HUGE_VAL);
  EXPECT_EQ(share({NAN, 1}, {1, 1}), HUGE_VAL);
}
TEST_F(Allowance, ZeroesAreExact) {
  EXPECT_EQ(share({0, 0}, {1e-30f, 0}), HUGE_VAL);
}

} // namespace
} // namespace meshwork::runtime
