// A plan as the tools see it: encoded, and checked when it is opened.
#pragma once

#include "lib/Plan/PlanFile.h"
#include "test/Plan/TestPlan.h"
#include <gtest/gtest.h>

namespace meshwork::explain::test {

struct Loaded {
  explicit Loaded(const plan::PlanT &plan) {
    auto opened = plan::PlanFile::fromBytes(plan::test::encode(plan));
    if (!opened.ok())
      ADD_FAILURE() << opened.status();
    else
      file = std::move(*opened);
  }
  const plan::Plan &plan() const { return file->plan(); }
  const plan::Program &program() const { return *plan().programs()->Get(0); }

private:
  std::unique_ptr<plan::PlanFile> file;
};

inline Loaded tiny(uint32_t ranks, uint32_t microbatches = 2) {
  return Loaded(
      plan::test::tinyPlan({.ranks = ranks, .microbatches = microbatches}));
}

#define EXPECT_HAS(text, part)                                                 \
  EXPECT_NE((text).find(part), std::string::npos) << part << "\nis not in\n"   \
                                                  << (text)
#define EXPECT_LACKS(text, part)                                               \
  EXPECT_EQ((text).find(part), std::string::npos) << part << "\nis in\n"       \
                                                  << (text)

} // namespace meshwork::explain::test
