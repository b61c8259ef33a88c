// Plans with a right checksum and a wrong meaning: each is one change to a
// good plan, and the message must say what the change broke.
#pragma once

#include "TestPlan.h"
#include "lib/Plan/PlanFile.h"
#include <functional>
#include <gtest/gtest.h>

namespace meshwork::plan::test {

struct Mutant {
  const char *expected; // part of the message
  std::function<void(PlanT &, ProgramT &)> change;
};

/// Refuses each mutant of `good`, a plan that itself is accepted.
inline void expectRefused(const std::function<PlanT()> &good,
                          const std::vector<Mutant> &mutants) {
  auto unchanged = PlanFile::fromBytes(encode(good()));
  ASSERT_TRUE(unchanged.ok()) << unchanged.status();
  for (const Mutant &mutant : mutants) {
    PlanT plan = good();
    mutant.change(plan, *plan.programs[0]);
    auto file = PlanFile::fromBytes(encode(plan));
    ASSERT_FALSE(file.ok()) << "accepted: " << mutant.expected;
    EXPECT_NE(std::string(file.status().message()).find(mutant.expected),
              std::string::npos)
        << "expected: " << mutant.expected << "\nfound: " << file.status();
  }
}

inline PlanT cpuPlan() { return tinyPlan({.ranks = 4}); }

template <typename Op> Op &microbatchOp(ProgramT &p, size_t i) {
  return opOf<Op>(*forwardOf(p)[i]);
}

} // namespace meshwork::plan::test
