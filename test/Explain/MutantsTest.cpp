// Plans with a right checksum and a changed byte: what the plan check accepts
// must be told without a crash; the sanitizers look.
#include "Loaded.h"
#include "lib/Explain/Explain.h"
#include "lib/Report/Report.h"
#include "meshwork/Plan/Frame.h"
#include <random>

namespace meshwork::explain::test {
namespace {

TEST(Mutants, whatTheCheckAcceptsIsToldWithoutACrash) {
  const std::vector<unsigned char> good =
      plan::test::encode(plan::test::tinyPlan({.ranks = 2}));
  std::mt19937 random(5);
  size_t accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<unsigned char> file = good;
    for (uint32_t changes = 1 + random() % 3; changes > 0; --changes)
      file[plan::frameBytes + random() % (file.size() - plan::frameBytes)] =
          static_cast<unsigned char>(random());
    plan::writeFrame(file.data() + plan::frameBytes,
                     file.size() - plan::frameBytes, file.data());
    auto opened = plan::PlanFile::fromBytes(file);
    if (!opened.ok())
      continue;
    ++accepted;
    const plan::Plan &plan = (*opened)->plan();
    EXPECT_FALSE(text(plan, {.schedule = true}).empty());
    if (plan.microbatches() <
        10000) // A long list of actions takes long, no more.
      EXPECT_TRUE(json(plan).ok());
    if (accepted % 32 == 0)
      EXPECT_FALSE(report::page(plan, {}).empty());
    for (const char *name : {"wte.weight", "x", "*"})
      EXPECT_FALSE(value(plan, name).ok() && value(plan, name)->empty());
  }
  // Names, costs and causes are free, so many mutants live; if none did, this
  // test would look at nothing.
  EXPECT_GT(accepted, 1000u);
}

} // namespace
} // namespace meshwork::explain::test
