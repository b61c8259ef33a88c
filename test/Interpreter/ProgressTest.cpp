// What a long compilation says, and when.
#include <gtest/gtest.h>

#include "tools/meshwork/driver/Progress.h"

namespace meshwork::driver {
namespace {

TEST(Progress, AShortCompilationSaysNothing) {
  ProgressText text(/*isTerminal=*/true);
  EXPECT_EQ(text.tick(0), "");
  EXPECT_EQ(text.begin("step", 0.5), "");
  EXPECT_EQ(text.begin("shard", 1), "");
  EXPECT_EQ(text.tick(9.9), "");
  EXPECT_EQ(text.begin("plan", 9.95), "");
}

TEST(Progress, ALongOneTellsItsPhasesAndTheirTime) {
  ProgressText text(/*isTerminal=*/true);
  text.begin("input", 0);
  text.begin("step", 0.05);
  text.begin("shard", 4.25);
  EXPECT_EQ(text.nextSeconds(), 10);
  EXPECT_EQ(text.tick(10),
            "meshwork: 10 s: step 4.2 s; shard has run for 5.8 s\n");
  EXPECT_EQ(text.nextSeconds(), 40);
  EXPECT_EQ(text.begin("partition", 12), "");
  EXPECT_EQ(text.begin("plan", 13), "");
  EXPECT_EQ(text.tick(39), "");
  EXPECT_EQ(text.tick(40), "meshwork: 40 s: shard 7.8 s, partition 1.0 s; "
                           "plan has run for 27 s\n");
  EXPECT_EQ(text.begin("memory", 75),
            "meshwork: 75 s: plan 62 s; now memory\n");
}

TEST(Progress, WhereNobodyWatchesItBeginsLater) {
  ProgressText text(/*isTerminal=*/false);
  text.begin("plan", 0);
  EXPECT_EQ(text.tick(59), "");
  EXPECT_EQ(text.tick(60), "meshwork: 60 s: plan has run for 60 s\n");
}

} // namespace
} // namespace meshwork::driver
