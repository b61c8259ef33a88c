// The closed form against runs whose failures are drawn at random.
#include "lib/Simulate/Goodput.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

namespace meshwork::simulate::test {
namespace {

/// A run that goes from failure to failure, with a checkpoint after each
/// `steps` steps that lasts once it was written.
class Drawn {
public:
  Drawn(const TrainingRun &run, uint64_t steps)
      : run(run), work(static_cast<double>(steps) * run.step) {}

  /// The part of the time in steps that were kept.
  double share(int failures) {
    double kept = 0, time = 0;
    for (int i = 0; i < failures; ++i) {
      double until = draw(random) * run.failures;
      kept += i == 0 ? keptIn(until) : keptIn(until - run.restart - run.read);
      time += until;
    }
    return kept / time;
  }

private:
  /// Of so many seconds of training, ended by a failure.
  double keptIn(double seconds) const {
    double periods = std::floor((seconds - run.write) / (work + run.copy));
    return std::max(0.0, periods) * work;
  }

  TrainingRun run;
  double work;
  std::mt19937_64 random{7};
  std::exponential_distribution<double> draw{1};
};

TEST(Goodput, isThatOfRunsWithFailuresDrawnAtRandom) {
  for (double write : {0.0, 30.0, 200.0})
    for (uint64_t steps : {200, 500, 3000}) {
      TrainingRun run{1, 5, write, 50, 100, 20000};
      EXPECT_NEAR(goodputOf(run, steps), Drawn(run, steps).share(20000), 2e-3)
          << write << " s to write, each " << steps << " steps";
    }
}

/// Young's first order: sqrt(2 copy failures).
/// Source: J. W. Young, Communications of the ACM 17 (1974) 530-531.
TEST(Goodput, isBestAtYoungsInterval) {
  TrainingRun run{1, 5, 0, 50, 100, 20000};
  Goodput best = bestGoodput(run);
  EXPECT_NEAR(static_cast<double>(best.steps), std::sqrt(2 * 5 * 20000.0), 10);
  for (uint64_t steps :
       {best.steps - 1, best.steps + 1, best.steps / 2, best.steps * 2})
    EXPECT_LE(goodputOf(run, steps), best.share);
}

TEST(Goodput, waitsForTheCheckpointBefore) {
  EXPECT_EQ(bestGoodput({2, 0, 1001, 0, 0, 1e6}).steps, 501u);
  EXPECT_EQ(bestGoodput({2, 0, 0, 0, 0, 1e6}).steps, 1u);
}

TEST(Goodput, isNothingWhereEachStepFails) {
  Goodput goodput = bestGoodput({1e6, 1, 1, 1, 1, 1e-3});
  EXPECT_EQ(goodput.share, 0);
  EXPECT_EQ(bestGoodput({1e-9, 1e9, 1e9, 1e9, 1e9, 1e12}).share > 0, true);
}

} // namespace
} // namespace meshwork::simulate::test
