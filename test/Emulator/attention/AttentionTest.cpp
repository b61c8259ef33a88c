// The device functions of attention, compiled to PTX with the sizes of Cases.h
// and executed, against double precision (Reference.h) and against the CPU's
// attention, which has the same bounds.
#include "passes/codegen/gpu/library/AttentionGeometry.h"
#include "test/Emulator/attention/Run.h"
#include "test/Runtime/cpu/TestProgram.h"

#include "absl/strings/str_cat.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>

namespace meshwork::attention::test {
namespace {
std::vector<int> documentsOf(const Case &c) {
  std::vector<int> documents;
  for (long long b = 0; b < c.batch; ++b)
    for (long long row = 0; row < c.rows(); ++row)
      documents.push_back(static_cast<int>(documentOf(c, b, c.queryOf(row))));
  return documents;
}

Inputs inputsOf(const Case &c) {
  plan::DType type = c.bf16 ? plan::DType::bf16 : plan::DType::f32;
  int64_t queries = c.batch * c.rows() * c.heads * c.d,
          keys = c.batch * c.columns() * c.kvHeads * c.d;
  Inputs in = {runtime::test::randomValues(queries, type, 11),
               runtime::test::randomValues(keys, type, 12),
               runtime::test::randomValues(keys, type, 13),
               runtime::test::randomValues(queries, type, 14),
               42,
               7,
               3,
               1,
               documentsOf(c)};
  // Nobody may see what stands in padding.
  for (int64_t at = 0; at < keys; ++at)
    if (c.keyOf(at / (c.kvHeads * c.d) % c.columns()) < 0)
      in.k[at] = in.v[at] = NAN;
  return in;
}

/// Largest share of the bound that is used, at most `allowed`.
void expectWithin(const char *what, const Values &found, const Values &expected,
                  const Values &bound, double allowed) {
  ASSERT_EQ(found.size(), expected.size());
  double worst = 0;
  size_t at = 0;
  for (size_t e = 0; e < found.size(); ++e) {
    double share = found[e] == expected[e]
                       ? 0 // and infinite: of padding
                       : std::fabs(found[e] - expected[e]) / bound[e];
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

/// A hop of a ring, and where its keys are in the whole.
class Hop {
public:
  Hop(const char *name, const Case &c, const Case &whole, const Inputs &all)
      : name(name), c(c), whole(whole), in(inputsOf(c)) {
    in.q = all.q;
    in.dout = all.dout;
    eachKey([&](size_t here, size_t there) {
      in.k[here] = all.k[there];
      in.v[here] = all.v[there];
    });
  }

  Outcome run(const RowsOfAll *all) const {
    return runOnDevice(name, c, in, all);
  }

  /// Of each element of k: visit(place here, place in the whole).
  template <typename Visit> void eachKey(Visit visit) const {
    long long row = c.kvHeads * c.d;
    for (long long at = 0; at < std::ssize(in.k); ++at) {
      long long sample = at / row / c.columns(),
                key = c.keyOf(at / row % c.columns());
      if (key >= 0)
        visit(static_cast<size_t>(at),
              static_cast<size_t>((sample * whole.sequence + key) * row +
                                  at % row));
    }
  }

private:
  const char *name;
  const Case &c, &whole;
  Inputs in;
};

/// Adds what a row has of a hop to what it has of others.
void merge(const Case &c, RowsOfAll &rows, const Outcome &hop) {
  for (long long at = 0; at < std::ssize(rows.out); ++at) {
    long long row = at / c.d, head = row % c.heads,
              i = row / c.heads % c.rows(), sample = row / c.heads / c.rows();
    size_t lse = (sample * c.heads + head) * c.rows() + i;
    bool isLast = at % c.d == c.d - 1;
    double first = std::exp(rows.lse[lse]), second = std::exp(hop.lse[lse]);
    if (second == 0)
      continue;
    rows.out[at] =
        (first * rows.out[at] + second * hop.out[at]) / (first + second);
    if (isLast)
      rows.lse[lse] = std::log(first + second);
  }
}
bool isBf16(double value) {
  return (std::bit_cast<uint32_t>(static_cast<float>(value)) & 0xffff) == 0;
}

/// Hops over all keys have the results of attention to the whole sequence, once
/// merged and summed outside. Those of bf16 are rounded once more on the way.
void expectRing(const Case &whole, std::vector<Hop> hops, const Inputs &in) {
  Reference exact = attend(whole, in);
  RowsOfAll rows{Values(in.q.size()),
                 Values(exact.lse.value.size(), -INFINITY)};
  for (const Hop &hop : hops)
    merge(whole, rows, hop.run(nullptr));
  expectWithin("out", rows.out, exact.out.value, exact.out.bound, 2);
  expectWithin("lse", rows.lse, exact.lse.value, exact.lse.bound, 2);
  Values dq(in.q.size()), dk(in.k.size()), dv(in.k.size());
  for (const Hop &hop : hops) {
    Outcome found = hop.run(&rows);
    EXPECT_FALSE(std::all_of(found.dv.begin(), found.dv.end(), isBf16));
    for (size_t at = 0; at < dq.size(); ++at)
      dq[at] += found.dq[at];
    hop.eachKey([&](size_t here, size_t there) {
      dk[there] += found.dk[here];
      dv[there] += found.dv[here];
    });
  }
  expectWithin("dq", dq, exact.dq.value, exact.dq.bound, 2);
  expectWithin("dk", dk, exact.dk.value, exact.dk.bound, 2);
  expectWithin("dv", dv, exact.dv.value, exact.dv.bound, 2);
}
#define HOP(whole, name) Hop(#name, name##Case, whole, in)
TEST(Attention, HopsOfARingAddUp) {
  Inputs in = inputsOf(firstCase);
  expectRing(firstCase,
             {HOP(firstCase, firstFrom0), HOP(firstCase, firstFrom1)}, in);
}
TEST(Attention, HopsOfARingWithDocumentsAndDropoutAddUp) {
  Inputs in = inputsOf(third32Case);
  expectRing(third32Case,
             {HOP(third32Case, third32From2), HOP(third32Case, third32From1),
              HOP(third32Case, third32From0)},
             in);
  in = inputsOf(partDocumentsCase);
  expectRing(partDocumentsCase,
             {HOP(partDocumentsCase, partDocumentsFrom1),
              HOP(partDocumentsCase, partDocumentsFrom0)},
             in);
}

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

/// `name` of a case, and the same shape with documents.
void expectOneDocumentIsNone(const char *name, const Case &c,
                             const char *withDocuments, Case with) {
  Outcome expected = runOnDevice(name, c, inputsOf(c));
  std::fill(std::begin(with.begins), std::end(with.begins), 0);
  Outcome found = runOnDevice(withDocuments, with, inputsOf(with));
  EXPECT_EQ(found.out, expected.out) << withDocuments;
  EXPECT_EQ(found.lse, expected.lse) << withDocuments;
  EXPECT_EQ(found.dq, expected.dq) << withDocuments;
  EXPECT_EQ(found.dk, expected.dk) << withDocuments;
  EXPECT_EQ(found.dv, expected.dv) << withDocuments;
}
TEST(Attention, OneDocumentHasTheBitsOfNone) {
  expectOneDocumentIsNone("d128", d128Case, "documents128", documents128Case);
  expectOneDocumentIsNone("window", windowCase, "documentsWindow",
                          documentsWindowCase);
  expectOneDocumentIsNone("window32", window32Case, "documentsWindow32",
                          documentsWindow32Case);
  expectOneDocumentIsNone("dropout", dropoutCase, "documentsDropout",
                          documentsDropoutCase);
  expectOneDocumentIsNone("dropout32", dropout32Case, "documentsDropout32",
                          documentsDropout32Case);
}

/// Makes [first, end) of the positions of sample 0 NaN in all operands.
Inputs poisoned(const Case &c, long long first, long long end) {
  Inputs in = inputsOf(c);
  auto poison = [&](Values &values, long long heads) {
    std::fill(values.begin() + first * heads * c.d,
              values.begin() + end * heads * c.d, NAN);
  };
  poison(in.q, c.heads);
  poison(in.k, c.kvHeads);
  poison(in.v, c.kvHeads);
  poison(in.dout, c.heads);
  return in;
}
/// The values of those positions are NaN, all others are not.
void expectOnlyNan(const char *what, const Values &values, long long rowSize,
                   long long first, long long end) {
  for (long long at = 0; at < std::ssize(values); ++at) {
    bool isPoisoned = at >= first * rowSize && at < end * rowSize;
    ASSERT_EQ(std::isnan(values[at]), isPoisoned) << what << " at " << at;
  }
}
/// `edge` is one of documents and of blocks: blocks at the other side are not
/// multiplied by zero, they are not read.
void expectApart(const char *name, const Case &c, long long edge) {
  struct Part {
    long long first, end;
  };
  for (Part part : {Part{0, edge}, {edge, c.sequence}}) {
    Outcome found = runOnDevice(name, c, poisoned(c, part.first, part.end));
    long long row = c.heads * c.d, keyRow = c.kvHeads * c.d;
    expectOnlyNan("out", found.out, row, part.first, part.end);
    expectOnlyNan("dq", found.dq, row, part.first, part.end);
    expectOnlyNan("dk", found.dk, keyRow, part.first, part.end);
    expectOnlyNan("dv", found.dv, keyRow, part.first, part.end);
  }
}
TEST(Attention, HiddenBlocksAreNotRead) {
  expectApart("documents", documentsCase, 128);
  expectApart("documents32", documents32Case, 64);
  expectApart("documents128", documents128Case, 128);
}

TEST(Attention, HiddenBlocksTakeNoTime) {
  Case c = documentsLongCase;
  Inputs in = inputsOf(c);
  auto instructions = [&](int length) {
    for (size_t i = 0; i < in.documents.size(); ++i)
      in.documents[i] = static_cast<int>(i % c.sequence) / length * length;
    return runOnDevice("documentsLong", c, in).instructions;
  };
  // With documents of 128, 16 of 72 blocks forward and of dk and dv, 32 of 144
  // of dq. What is once a block of queries and the masks come to that: 0.38.
  EXPECT_LT(static_cast<double>(instructions(128)),
            0.45 * static_cast<double>(instructions(1024)));
}

/// No plan's data are such; memory outside is not touched even then, and a
/// query still sees itself.
TEST(Attention, AnyPositionOfDocumentsIsSafe) {
  constexpr int any[] = {-1, 1 << 30, INT_MIN, 0, 77, INT_MAX, -300, 299};
  Inputs in = inputsOf(documentsCase);
  for (size_t i = 0; i < in.documents.size(); ++i)
    in.documents[i] = any[i * i % std::size(any)];
  for (int first : any) {
    in.documents[0] = in.documents[128] = first;
    Outcome found = runOnDevice("documents", documentsCase, in);
    for (const Values *values :
         {&found.out, &found.lse, &found.dq, &found.dk, &found.dv})
      for (double value : *values)
        ASSERT_TRUE(std::isfinite(value));
  }
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
