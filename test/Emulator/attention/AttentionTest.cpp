// The device functions of attention, compiled to PTX with the sizes of Cases.h
// and executed, against double precision (Reference.h) and against the CPU's
// attention, which has the same bounds.
#include "passes/codegen/gpu/library/AttentionGeometry.h"
#include "test/Emulator/attention/Run.h"
#include "test/Runtime/cpu/TestProgram.h"

#include "absl/strings/str_cat.h"
#include <gtest/gtest.h>

#include <cmath>

namespace meshwork::attention::test {
namespace {
Inputs inputsOf(const Case &c) {
  plan::DType type = c.bf16 ? plan::DType::bf16 : plan::DType::f32;
  int64_t queries = c.batch * c.sequence * c.heads * c.d,
          keys = c.batch * c.sequence * c.kvHeads * c.d;
  return {runtime::test::randomValues(queries, type, 11),
          runtime::test::randomValues(keys, type, 12),
          runtime::test::randomValues(keys, type, 13),
          runtime::test::randomValues(queries, type, 14),
          42,
          7,
          3,
          1};
}

/// Largest share of the bound that is used, at most `allowed`.
void expectWithin(const char *what, const Values &found, const Values &expected,
                  const Values &bound, double allowed) {
  ASSERT_EQ(found.size(), expected.size());
  double worst = 0;
  size_t at = 0;
  for (size_t e = 0; e < found.size(); ++e) {
    double share = std::fabs(found[e] - expected[e]) / bound[e];
    if (std::isnan(share) || share > worst) {
      worst = std::isnan(share) ? INFINITY : share;
      at = e;
    }
  }
  EXPECT_LE(worst, allowed)
      << what << " [" << at << "]: found " << found[at] << ", expected "
      << expected[at] << " within " << bound[at];
  testing::Test::RecordProperty(what, absl::StrCat(worst));
}

void expectCase(const char *name, const Case &c) {
  Inputs in = inputsOf(c);
  Reference exact = attend(c, in);
  Outcome found = runOnDevice(name, c, in), known = runOnCpu(c, in);
  struct Compared {
    const char *what;
    const Result &exact;
    const Values &found, &known;
  };
  for (const Compared &each : {Compared{"out", exact.out, found.out, known.out},
                               {"lse", exact.lse, found.lse, known.lse},
                               {"dq", exact.dq, found.dq, known.dq},
                               {"dk", exact.dk, found.dk, known.dk},
                               {"dv", exact.dv, found.dv, known.dv}}) {
    expectWithin(each.what, each.found, each.exact.value, each.exact.bound, 1);
    expectWithin("CPU", each.found, each.known, each.exact.bound, 2);
  }
}

#define CASE_TEST(name, type, padded, shape)                                   \
  TEST(Attention, name) {                                                      \
    static_assert(classOf(name##Case.d) == padded);                            \
    expectCase(#name, name##Case);                                             \
  }
ATTENTION_TEST_CASES(CASE_TEST)

/// Poisons one element of key 130 and tells which queries of head 0 show it.
void expectNanShows(const char *name, const Case &c, Values Inputs::*operand) {
  Inputs in = inputsOf(c);
  (in.*operand)[130 * c.kvHeads * c.d + 3] = NAN;
  Outcome found = runOnDevice(name, c, in);
  for (long long i = 0; i < c.sequence; ++i) {
    // What it does in rows that do not see the key but share a block with it is
    // open; the block of this key begins at 128.
    double out = found.out[i * c.heads * c.d + 3],
           dq = found.dq[i * c.heads * c.d + 3];
    if (i >= 130) {
      EXPECT_TRUE(std::isnan(out) && std::isnan(dq)) << i;
    } else if (i < 128) {
      EXPECT_FALSE(std::isnan(out) || std::isnan(dq)) << i;
    }
  }
  EXPECT_TRUE(std::isnan(found.dk[130 * c.kvHeads * c.d]));
}
TEST(Attention, NotANumberInKeysShows) {
  expectNanShows("plain", plainCase, &Inputs::k);
  expectNanShows("plain32", plain32Case, &Inputs::k);
}
TEST(Attention, NotANumberInValuesShows) {
  expectNanShows("plain", plainCase, &Inputs::v);
  expectNanShows("plain32", plain32Case, &Inputs::v);
}

TEST(Attention, SameBitsEachRun) {
  Inputs in = inputsOf(groupsCase);
  Outcome first = runOnDevice("groups", groupsCase, in),
          second = runOnDevice("groups", groupsCase, in);
  EXPECT_EQ(first.dq, second.dq);
  EXPECT_EQ(first.dk, second.dk);
  EXPECT_EQ(first.dv, second.dv);
}

} // namespace
} // namespace meshwork::attention::test
