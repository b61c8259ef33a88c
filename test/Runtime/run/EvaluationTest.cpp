// What the losses of an evaluation's steps come to, with a last step that is
// not full.
#include "runtime/train/Evaluation.h"
#include <algorithm>
#include <gtest/gtest.h>

namespace meshwork::runtime {
namespace {

/// A window's loss and its targets that count.
struct One {
  double loss;
  uint64_t targets;
};
One windowAt(uint64_t number) {
  return {1.0 / static_cast<double>(number + 1), number % 3};
}

TEST(EvaluationSteps, EachWindowCountsOnce) {
  for (uint64_t global : {1, 2, 4, 7})
    for (uint64_t windows = 1; windows < 18; ++windows) {
      EvaluationSteps steps(windows, global);
      std::vector<float> losses;
      std::vector<uint64_t> targets;
      for (uint64_t k = 0; k < steps.count(); ++k) {
        double sum = 0;
        uint64_t count = 0;
        for (uint64_t i = 0; i < global; ++i) {
          One one =
              windowAt(std::min(steps.firstWindow(k) + i, steps.lastWindow()));
          sum += one.loss * static_cast<double>(one.targets);
          count += one.targets;
        }
        losses.push_back(static_cast<float>(
            sum / static_cast<double>(std::max<uint64_t>(count, 1))));
        targets.push_back(count);
      }
      double sum = 0, count = 0;
      for (uint64_t i = 0; i < windows; ++i) {
        sum += windowAt(i).loss * static_cast<double>(windowAt(i).targets);
        count += static_cast<double>(windowAt(i).targets);
      }
      EXPECT_NEAR(steps.targets(targets), count, 1e-9);
      // Of each loss 2^-24 is lost, times at most the windows of a step.
      EXPECT_NEAR(steps.mean(losses, targets), sum / std::max(count, 1.0), 1e-6)
          << windows << " windows, " << global << " a step";
    }
}

TEST(EvaluationSteps, FullStepsNeedNoOther) {
  EXPECT_EQ(EvaluationSteps(8, 4).count(), 2u);
  EXPECT_EQ(EvaluationSteps(9, 4).count(), 4u);
}
} // namespace
} // namespace meshwork::runtime
